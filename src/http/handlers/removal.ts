import type { Cell } from "../../core/directory/messages.ts";
import { DigestSum } from "../../core/digest.ts";
import { fanOut } from "../../core/fan-out.ts";
import type {
  CellClaimCounts,
  CellClaimPosition,
  CellStatus,
  ClaimCount,
  RangeDigest,
  RemovalEnd,
} from "../../core/messages.ts";
import { ok, refused, type Result } from "../../core/refusal.ts";
import type { Types } from "../../core/types/types.ts";
import { timeOf, toApiCell } from "../answers.ts";
import type { removalRoutes } from "../contract/removal-routes.ts";
import type { Deployment } from "../deployment.ts";
import { sumOf } from "../digest-parts.ts";
import type { Call, Handlers } from "../handler.ts";
import { operatorOf } from "../operator.ts";
import { DIRECTORY, LEDGER, reach, readTimeoutMs, withFailure } from "../reach.ts";
import { reasonFault } from "../reason.ts";
import { digestsOf } from "./digest-records.ts";
import { MAX_CALLS } from "./record-range.ts";

type Exported = Call<"startRemoval">["body"]["export"];
type ApiCell = { cell: ReturnType<typeof toApiCell> };

const TOLD_LATER = "the cell is removed, and the directory is told within minutes; or repeat the call";
const UNSURE = "it may have been done; read the removal, or repeat the call";

export const removalHandlers: Handlers<keyof typeof removalRoutes> = {
  async getRemoval({ deployment, params }) {
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const counted = await countClaims(deployment, params.cell);
    if (!counted.ok) return counted;
    const { counts, isComplete } = counted.value;
    const types = await deployment.types.forAnswer(
      counts.flatMap(({ sourceType, type }) => [
        { kind: "source" as const, number: sourceType },
        { kind: "bucket" as const, number: type },
      ]),
    );
    if (!types.ok) return types;
    const { state, outstandingLeases, unappliedDecisions, removal } = found.value.status;
    const { removedAtMs } = found.value.cell;
    const body = {
      cell_id: params.cell,
      state,
      outstanding_leases: outstandingLeases,
      unapplied_decisions: unappliedDecisions,
      claims: counts.map(({ sourceType, type, claims }) => ({
        source_type: types.value.numbered("source", sourceType)?.name ?? "",
        bucket_type: types.value.numbered("bucket", type)?.name ?? "",
        count: claims,
      })),
      claims_total: counts.reduce((sum, { claims }) => sum + claims, 0),
      is_complete: isComplete,
      progress: removal && {
        exported_claims: removal.records,
        released_claims: removal.released,
        can_be_cancelled: !removal.hasBegun,
      },
      removed_at: removedAtMs === null ? null : timeOf(removedAtMs),
    };
    return ok({ status: 200, body: { removal: body } });
  },

  async startRemoval(call) {
    const { deployment, params, body } = call;
    const fault = reasonFault(body.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    // The ledger's position is read before the claims, so that a change since then is noticed (X2).
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const records = await compare(deployment, params.cell, body.export);
    if (!records.ok) return records;
    const { stateVersion, position } = found.value.status;
    return changed(call, found.value.cell, (ledger, envelope) =>
      ledger.startRemoval({ ...envelope, stateVersion, position, records: records.value }),
    );
  },

  async stepRemoval(call) {
    const { deployment, params, body } = call;
    const { objects, envelope, config } = deployment;
    const fault = reasonFault(body.reason, config.limits);
    if (fault !== undefined) return fault;
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const { cell, status } = found.value;
    const { beginDeadlineMs, commitDeadlineMs, batchOps } = config.limits;
    const timeoutMs = readTimeoutMs(config.limits) + beginDeadlineMs + commitDeadlineMs;
    const done = await reach(timeoutMs, { name: LEDGER, advice: "repeat the call" }, () =>
      objects.ledger(params.cell, cell.locationHint).removalStep({
        ...envelope,
        operator: operatorOf(call, body.reason),
        stateVersion: status.stateVersion,
        limit: body.limit ?? batchOps,
      }),
    );
    if (!done.ok) return done;
    const { state, released, left, end } = done.value;
    const told = end === null ? ok(null) : await tellDirectory(deployment, cell, end);
    if (!told.ok) return told;
    return ok({ status: 200, body: { state, released_claims: released, claims_left: left } });
  },

  async cancelRemoval(call) {
    const { deployment, params, body } = call;
    const fault = reasonFault(body.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const { stateVersion } = found.value.status;
    return changed(call, found.value.cell, (ledger, envelope) =>
      ledger.cancelRemoval({ ...envelope, stateVersion }),
    );
  },
};

/** Tells the directory what the ledger has said: the cell is removed (X5). Nothing changes if it knows. */
async function tellDirectory(
  { objects, envelope, config, directory }: Deployment,
  { cell, removedAtMs: known }: Cell,
  { atMs: removedAtMs, operator }: RemovalEnd,
): Promise<Result<unknown>> {
  if (known !== null) return ok(null);
  const told = await reach(readTimeoutMs(config.limits), { name: DIRECTORY, advice: TOLD_LATER }, () =>
    objects.directory().removeCell({ ...envelope, operator, cell, removedAtMs }),
  );
  directory.expire();
  return told.ok
    ? told
    : withFailure(told, { detail: `cell ${cell} is removed, but ${told.refusal.detail}` });
}

async function cellAndStatus(
  deployment: Deployment,
  id: string,
): Promise<Result<{ cell: Cell; status: CellStatus }>> {
  const cell = await deployment.directory.presentCell(id);
  if (!cell.ok) return cell;
  const status = await statusOf(deployment, cell.value);
  return status.ok ? ok({ cell: cell.value, status: status.value }) : status;
}

const statusOf = (
  { objects, envelope, config }: Deployment,
  { cell, locationHint }: Cell,
): Promise<Result<CellStatus>> =>
  reach(readTimeoutMs(config.limits), { name: LEDGER }, () =>
    objects.ledger(cell, locationHint).status(envelope),
  );

type Ledger = ReturnType<Deployment["objects"]["ledger"]>;
type ByOperator = Deployment["envelope"] & { operator: ReturnType<typeof operatorOf> };

/** Changes the state of the cell's removal, and answers the cell. */
async function changed(
  call: Call<"startRemoval" | "cancelRemoval">,
  cell: Cell,
  change: (ledger: Ledger, envelope: ByOperator) => ReturnType<Ledger["startRemoval"]>,
): Promise<Result<{ status: 200; body: ApiCell }>> {
  const { deployment, body } = call;
  const { objects, envelope, config } = deployment;
  const operator = operatorOf(call, body.reason);
  const done = await reach(readTimeoutMs(config.limits), { name: LEDGER, advice: UNSURE }, () =>
    change(objects.ledger(cell.cell, cell.locationHint), { ...envelope, operator }),
  );
  if (!done.ok) return done;
  const after = await statusOf(deployment, cell);
  return ok({ status: 200, body: { cell: toApiCell(cell, after.ok ? after.value : undefined) } });
}

/**
 * Returns the number of claims of the cell, if the export has exactly those (X2). Claims only have types in
 * use, so a type that nobody has used needs no reading.
 */
async function compare(deployment: Deployment, cell: string, exported: Exported): Promise<Result<number>> {
  const read = await deployment.types.read();
  if (!read.ok) return read;
  const { types, refusalOfOthers } = read.value;
  if (refusalOfOthers !== undefined) return { ok: false, refusal: refusalOfOthers };
  const given = givenDigests(types, exported);
  if (!given.ok) return given;
  const used = types.entries.filter(({ kind, isInUse }) => kind === "source" && isInUse);
  const calls = Math.floor(MAX_CALLS / Math.max(used.length, 1));
  let records = 0;
  for (const { name, number } of used) {
    const digests = await digestsOf(deployment, calls, {
      ...deployment.envelope,
      cell,
      sourceType: number,
      bucketTypes: null,
      ranges: [{ after: "", upTo: null }],
      cursor: null,
    });
    if (!digests.ok) return digests;
    const digest = sumOf(digests.value.flat());
    if (digest.held) return isHeld(cell, name);
    const { count, hash } = given.value.get(name) ?? NO_CLAIMS;
    if (count !== digest.count || hash !== hashOf(digest)) return differs(cell, name, count, digest.count);
    given.value.delete(name);
    records += digest.count;
  }
  const unused = [...given.value].find(([, { count }]) => count > 0);
  return unused === undefined ? ok(records) : differs(cell, unused[0], unused[1].count, 0);
}

const hashOf = ({ words }: RangeDigest): string => {
  const sum = new DigestSum();
  sum.add(words);
  return sum.hash;
};

const NO_CLAIMS = { count: 0, hash: "0".repeat(32) };

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

const isHeld = (cell: string, sourceType: string): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `a lease of cell ${cell} holds claims of the source type ${sourceType}, or there are more of them than ` +
      "one call can compare; decide the cell's open leases, and repeat this call",
    { reason: "CELL_HAS_LEASES" },
  );

const differs = (cell: string, sourceType: string, given: number, has: number): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `cell ${cell} has ${has} claims of the source type ${sourceType}, and the export has ${given}` +
      `${given === has ? " others" : ""}; export again`,
    { reason: "EXPORT_DIFFERS" },
  );

/** Counts the claims of a cell on all shards, as far as one request gets. */
async function countClaims(
  deployment: Deployment,
  cell: string,
): Promise<Result<{ counts: ClaimCount[]; isComplete: boolean }>> {
  const { shards, limits } = deployment.config;
  const parts = await fanOut([...Array(shards).keys()], limits.fanOut, (shard) =>
    countOnShard(deployment, cell, shard, Math.max(1, Math.floor(MAX_CALLS / shards))),
  );
  const counts = new Map<string, ClaimCount>();
  let isComplete = true;
  for (const part of parts) {
    if (!part.ok) return part;
    isComplete &&= part.value.next === null;
    for (const { sourceType, type, claims } of part.value.counts) {
      const key = `${sourceType} ${type}`;
      counts.set(key, { sourceType, type, claims: (counts.get(key)?.claims ?? 0) + claims });
    }
  }
  const sorted = [...counts.values()].toSorted((a, b) => a.sourceType - b.sourceType || a.type - b.type);
  return ok({ counts: sorted, isComplete });
}

async function countOnShard(
  { objects, envelope, config }: Deployment,
  cell: string,
  shard: number,
  calls: number,
): Promise<Result<CellClaimCounts>> {
  const counts: ClaimCount[] = [];
  let behind: CellClaimPosition | null = null;
  for (let call = 0; call < calls; call += 1) {
    const from: CellClaimPosition | null = behind;
    const part: Result<CellClaimCounts> = await reach(
      readTimeoutMs(config.limits),
      { name: `shard ${shard}` },
      () => objects.shard(shard).countCellClaims({ ...envelope, cell, behind: from }),
    );
    if (!part.ok) return part;
    counts.push(...part.value.counts);
    behind = part.value.next;
    if (behind === null) break;
  }
  return ok({ counts, next: behind });
}
