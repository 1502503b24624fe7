import type { CellClaimPosition, ClaimCount } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Call } from "../../../api/handler.ts";
import type { removalRoutes } from "./routes.ts";
import { grownSince } from "../../../isolate/known-shards.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";
import {
  badCursor,
  FIRST_SHARD,
  walkBudget,
  walkShards,
  type WalkPosition,
} from "../../records/edge/shard-walk.ts";

/** Some of the claims of a cell, counted by their types. */
interface Counted {
  counts: ClaimCount[];
  /** Continues behind them. Null: all other claims were counted before. */
  cursor: string | null;
}

type CountCall = Call<(typeof removalRoutes)["getRemoval"]>;
type CountPosition = WalkPosition<CellClaimPosition> & { shards: number };

const scopeOf = ({ routeId, principal, params }: CountCall) => [routeId, principal.role, params.cell];

/** Where the call's cursor says to go on. Undefined: it has none. */
export async function countPositionOf(call: CountCall): Promise<Result<CountPosition | undefined>> {
  const read = await call.tokens.read<CountPosition>(scopeOf(call), call.query.cursor, badCursor);
  return (await grownSince("cursor", call, read)) ?? read;
}

/** Counts the claims of a cell on all shards, as far as one request gets. */
export async function countClaims(
  call: CountCall,
  from: WalkPosition<CellClaimPosition> = FIRST_SHARD,
): Promise<Result<Counted>> {
  const { deployment, tokens, params } = call;
  const { envelope, objects, config, shards } = deployment;
  const { limits } = config;
  const counts = new Map<string, ClaimCount>();
  const next = await walkShards({
    shards,
    width: limits.fanOut,
    from,
    budget: walkBudget(),
    read: (shard, behind: CellClaimPosition | null) =>
      reach(readTimeoutMs(limits), { name: `shard ${shard}` }, () =>
        objects.shard(shard).countCellClaims({ ...envelope, cell: params.cell, behind }),
      ),
    add: (part) => {
      for (const { sourceType, type, claims } of part.counts) {
        const key = `${sourceType} ${type}`;
        counts.set(key, { sourceType, type, claims: (counts.get(key)?.claims ?? 0) + claims });
      }
    },
  });
  if (!next.ok) return next;
  return ok({
    counts: [...counts.values()].toSorted((a, b) => a.sourceType - b.sourceType || a.type - b.type),
    cursor: next.value && (await tokens.make(scopeOf(call), { ...next.value, shards })),
  });
}
