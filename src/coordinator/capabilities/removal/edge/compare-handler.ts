import { DigestSum } from "../../../../common/digest.ts";
import type { CellStatus, DigestWords } from "../../../kernel/messages.ts";
import type { DigestCursor } from "../../records/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { Types } from "../../../../common/types/types.ts";
import type { Call } from "../../../api/handler.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { removalRoutes } from "./routes.ts";
import { grownSince } from "../../../isolate/known-shards.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";
import {
  badCursor,
  FIRST_SHARD,
  walkBudget,
  walkShards,
  type WalkBudget,
  type WalkPosition,
} from "../../records/edge/shard-walk.ts";

type ApproveCall = Call<(typeof removalRoutes)["approveRemoval"]>;
type Exported = ApproveCall["body"]["export"];

/** The state of the cell's ledger before any claim was compared (X2). */
type LedgerState = Pick<CellStatus, "position">;

/** How far the claims of one source type are read. */
interface Reading {
  sourceType: number;
  /** Where to read on. */
  left: WalkPosition<DigestCursor>;
  /** What was read. */
  count: number;
  words: DigestWords;
}

/** How far a comparison is. It travels in the cursor. Source types are compared by their numbers. */
interface Comparison extends LedgerState, Reading {
  /** The claims of the source types that are compared. */
  records: number;
  /** The number of shards that are read. */
  shards: number;
}

type Compared =
  | (LedgerState & { records: number })
  /** The claims are more than one call compares. The next call continues with the cursor. */
  | { cursor: string; compared_claims: number };

const NO_CLAIMS = { count: 0, hash: new DigestSum().hash };

const scopeOf = ({ routeId, principal, params, body }: ApproveCall) => [
  routeId,
  principal.role,
  params.cell,
  body.export,
];

/** How far the calls before this one have compared, by its cursor. Undefined: it has none. */
export async function comparisonOf(call: ApproveCall): Promise<Result<Comparison | undefined>> {
  const read = await call.tokens.read<Comparison>(scopeOf(call), call.body.cursor, badCursor);
  return (await grownSince("cursor", call, read)) ?? read;
}

/** A comparison that has read nothing yet. */
export const firstComparison = ({ shards }: Deployment, { position }: LedgerState): Comparison => ({
  shards,
  position,
  ...startOf(0),
  records: 0,
});

/**
 * Compares the claims of a cell with an export, as far as one call gets (X2). Answers the state that the
 * ledger had before the first call, and the number of claims, once they are found to be the same. Claims
 * only have types in use, so a type that nobody has used needs no reading.
 */
export async function compareExport(call: ApproveCall, before: Comparison): Promise<Result<Compared>> {
  const { deployment, tokens, params, body } = call;
  const read = await deployment.types.read();
  if (!read.ok) return read;
  const { types, refusalOfOthers } = read.value;
  if (refusalOfOthers !== undefined) return { ok: false, refusal: refusalOfOthers };
  const given = givenDigests(types, body.export);
  if (!given.ok) return given;
  const used = types.entries
    .filter(({ kind, isInUse }) => kind === "source" && isInUse)
    .toSorted((a, b) => a.number - b.number);
  const unused = [...given.value].find(
    ([name, { count }]) => count > 0 && !used.some((type) => type.name === name),
  );
  if (unused !== undefined) return differs(params.cell, unused[0], unused[1].count, 0);
  const { shards, position } = before;
  let { records } = before;
  const budget = walkBudget();
  for (const { name, number } of used) {
    if (number < before.sourceType) continue;
    const from = number === before.sourceType ? before : startOf(number);
    const part = await readPart(call, from, budget);
    if (!part.ok) return part;
    const { left, count, words } = part.value;
    if (left !== null) {
      const comparison: Comparison = {
        shards,
        position,
        sourceType: number,
        left,
        count,
        words,
        records,
      };
      const cursor = await tokens.make(scopeOf(call), comparison);
      return ok({ cursor, compared_claims: records + count });
    }
    const expected = given.value.get(name) ?? NO_CLAIMS;
    if (expected.count !== count || expected.hash !== hashOf(words))
      return differs(params.cell, name, expected.count, count);
    records += count;
  }
  return ok({ position, records });
}

const startOf = (sourceType: number): Reading => ({
  sourceType,
  left: FIRST_SHARD,
  count: 0,
  words: new DigestSum().words,
});

interface Part extends Pick<Reading, "count" | "words"> {
  /** Null: nothing is left of the source type. */
  left: Reading["left"] | null;
}

/** Reads on in the claims of one source type. */
async function readPart(
  { deployment, params }: ApproveCall,
  { sourceType, left: from, count, words }: Reading,
  budget: WalkBudget,
): Promise<Result<Part>> {
  const { envelope, objects, config, shards } = deployment;
  const { limits } = config;
  const sum = new DigestSum();
  sum.add(words, count);
  let isHeld = false;
  const left = await walkShards({
    shards,
    width: limits.fanOut,
    from,
    budget,
    read: (shard, cursor: DigestCursor | null) =>
      reach(readTimeoutMs(limits), { name: `shard ${shard}` }, () =>
        objects.shard(shard).digestRecords({
          ...envelope,
          cell: params.cell,
          sourceType,
          bucketTypes: null,
          ranges: [{ after: "", upTo: null }],
          cursor,
        }),
      ),
    add: ({ digests }) => {
      for (const digest of digests) {
        sum.add(digest.words, digest.count);
        isHeld ||= digest.held;
      }
    },
  });
  if (!left.ok) return left;
  if (isHeld) return isChanging(params.cell);
  return ok({ left: left.value, count: sum.count, words: sum.words });
}

function hashOf(words: DigestWords): string {
  const sum = new DigestSum();
  sum.add(words);
  return sum.hash;
}

/** The digests of an export by their source types. */
function givenDigests(
  types: Types,
  exported: Exported,
): Result<Map<string, { count: number; hash: string }>> {
  const given = new Map<string, { count: number; hash: string }>();
  for (const [index, { source_type: name, count, hash }] of exported.entries()) {
    const field = `export[${index}].source_type`;
    if (types.named("source", name) === undefined)
      return refused(
        "INVALID_ARGUMENT",
        `\`${field}\` must name a declared source type, and ${name} is none; declared: ` +
          types.names("source").join(", "),
        { field },
      );
    if (given.has(name))
      return refused("INVALID_ARGUMENT", `\`${field}\` must not name ${name} a second time`, { field });
    given.set(name, { count, hash });
  }
  return ok(given);
}

const isChanging = (cell: string): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `a lease of cell ${cell} holds claims or has just changed them, or a shard has restarted; decide the ` +
      "cell's open leases, and repeat this call without a cursor",
    { reason: "CELL_HAS_LEASES" },
  );

const differs = (cell: string, sourceType: string, given: number, has: number): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `cell ${cell} has ${has} claims of the source type ${sourceType}, and the export has ${given}` +
      `${given === has ? " others" : ""}; export again`,
    { reason: "EXPORT_DIFFERS" },
  );
