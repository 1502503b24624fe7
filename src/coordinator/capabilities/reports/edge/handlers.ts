import type * as z from "zod";
import type { Principal } from "../../../auth/principal.ts";
import type { Cell } from "../../../kernel/directory/messages.ts";
import { keyHash } from "../../../kernel/key-hash.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { routingRoutes, type routeResults } from "./routes.ts";
import type { routeFacts } from "../../../api/contract/schemas.ts";
import type { Positions } from "../../../../users/router/positions.ts";
import type { WaitUntil } from "../../../runtime.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { CELLS_MAX_AGE_S, kept, NOT_FOUND_MAX_AGE_S } from "../../../api/http-answer.ts";
import {
  keyInPath,
  keysInBody,
  lookUp,
  lookUpMany,
  ownersOf,
  toUnavailable,
  type ApiBucket,
  type KeyAnswer,
  type Looked,
} from "../../../isolate/lookup.ts";
import { unknownPositionIn, unknownShard } from "../../../isolate/known-shards.ts";
import { reach, readTimeoutMs, withFailure } from "../../../isolate/reach.ts";

/** How long the newest page of a report may be kept. */
const TAIL_MAX_AGE_S = 1;

/** Counted from when the question was sent, so the time that the coordinator takes is already in it (Q4). */
const AGE_WHEN_SENT_MS = 0;

const routingHandlers: Handlers<typeof routingRoutes> = {
  async getRoute({ deployment, waitUntil, principal, params, query: { min_position: wanted } }) {
    const { limits } = deployment.config;
    const fault = await unknownPosition(deployment, waitUntil, wanted);
    if (fault !== undefined) return fault;
    const key = await keyInPath(deployment, params);
    if (!key.ok) return key;
    const looked = await lookUp(deployment, [key.value]);
    if (!looked.ok) return looked;
    const [one] = looked.value;
    if (one === undefined) throw new Error("a lookup of one key has one answer");
    const behind = behindOf(one, wanted);
    if (behind !== undefined) return behind;
    const owners = await ownersOf(deployment, waitUntil, looked.value);
    if (!owners.ok) return owners;
    const route = found(one, principal, owners.value);
    const maxAgeS = Math.min(route === undefined ? NOT_FOUND_MAX_AGE_S : Infinity, limits.routeMaxAgeS);
    const headers = one.settled ? kept(maxAgeS) : {};
    return route === undefined
      ? withFailure(refused("NOT_FOUND", "no cell has this name"), { headers, route: factsOf(one) })
      : ok({ status: 200, body: { ...route, ...factsOf(one) }, headers });
  },

  async lookupRoutes({ deployment, waitUntil, principal, body: { names, min_position: wanted } }) {
    const fault = await unknownPosition(deployment, waitUntil, wanted);
    if (fault !== undefined) return fault;
    const keys = await keysInBody(deployment, names, "names");
    if (!keys.ok) return keys;
    const looked = await lookUpMany(deployment, waitUntil, keys.value, (one) => behindOf(one, wanted));
    if (!looked.ok) return looked;
    const { answers, cells } = looked.value;
    const results = names.flatMap((name, index) => {
      const each = answers[index];
      return each === undefined ? [] : [resultOf(name, each, principal, cells)];
    });
    return ok({ status: 200, body: { results } });
  },

  async getReport({ deployment, waitUntil, params: { shard }, query: { after = null } }) {
    const { objects, envelope, config } = deployment;
    const unknown = await unknownShard(deployment, waitUntil, shard);
    if (unknown !== undefined) return unknown;
    const report = await reach(readTimeoutMs(config.limits), { name: `shard ${shard}` }, () =>
      objects.shard(shard).report({ ...envelope, after }),
    );
    if (!report.ok) return report;
    const { after: from, through, held, hasMore } = report.value;
    return ok({
      status: 200,
      body: {
        shard,
        after: from,
        through,
        // Distances are shorter than positions.
        held: held.map(({ position, keys }): [number, string[]] => [position - from, keys]),
        has_more: hasMore,
        age_ms: AGE_WHEN_SENT_MS,
      },
      // A full page depends on nothing but its path (Q3).
      headers: hasMore ? kept(86_400, ", immutable") : kept(TAIL_MAX_AGE_S),
    });
  },

  async listCellAddresses({ deployment, waitUntil }) {
    const aged = await deployment.directory.agedView(waitUntil);
    if (!aged.ok) return aged;
    const { view, ageMs } = aged.value;
    const cells = [...view.cells.values()].map(ownerOf);
    // JSON has no infinite age.
    const age_ms = Math.min(ageMs, Number.MAX_SAFE_INTEGER);
    return ok({ status: 200, body: { cells, age_ms }, headers: kept(CELLS_MAX_AGE_S) });
  },
};

const unknownPosition = (
  deployment: Deployment,
  waitUntil: WaitUntil,
  wanted: Positions | undefined,
): Promise<Result<never> | undefined> => unknownPositionIn("min_position", deployment, waitUntil, wanted);

/**
 * Refuses an answer of a shard that has not reached the position that the caller has seen (Q9). The caller is
 * a router or a cell, whose word about a shard is not a peer's: the shard is not told, so that no caller can
 * make it refuse everything (H4).
 */
function behindOf({ shard, position }: Looked, wanted: Positions | undefined): Result<never> | undefined {
  return position >= (wanted?.get(shard) ?? 0)
    ? undefined
    : refused("UNAVAILABLE", `shard ${shard} has not reached its position in \`min_position\``, {
        field: "min_position",
        retryAfterMs: 1_000,
      });
}

function resultOf(
  name: ApiBucket,
  answer: KeyAnswer,
  principal: Principal,
  cells: ReadonlyMap<string, Cell>,
): z.input<typeof routeResults>[number] {
  if (!answer.ok) return { name, shard: answer.shard, unavailable: toUnavailable(answer.refusal) };
  const route = found(answer.value, principal, cells);
  return { name, found: route !== undefined, ...route, ...factsOf(answer.value) };
}

const factsOf = ({ key, shard, position, settled }: Looked): z.input<typeof routeFacts> => ({
  key: keyHash(key),
  shard,
  position,
  settled,
  age_ms: AGE_WHEN_SENT_MS,
});

interface Found {
  cell: { id: string; address: string };
  epoch?: number;
}

/**
 * Undefined if no cell has the name. Of another cell's name, a cell gets no epoch: a lookup of the record
 * doesn't show it either.
 */
function found(
  { record }: Looked,
  { role, cell }: Principal,
  cells: ReadonlyMap<string, Cell>,
): Found | undefined {
  if (record === null) return undefined;
  const owner = { id: record.cell, address: cells.get(record.cell)?.address ?? "" };
  return role === "cell" && cell !== record.cell ? { cell: owner } : { cell: owner, epoch: record.epoch };
}

const ownerOf = ({ cell, address }: Cell): { id: string; address: string } => ({ id: cell, address });

export { routingHandlers as handlers, routingRoutes as routes };
