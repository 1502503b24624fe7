import type { BucketKey, CellStatus } from "../../../kernel/messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { TransferPlan } from "../messages.ts";
import type { Call, Handler } from "../../../api/handler.ts";
import type { transferRoutes } from "./routes.ts";
import { grownSince } from "../../../isolate/known-shards.ts";
import { LEDGER, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import {
  badCursor,
  FIRST_SHARD,
  walkBudget,
  walkShards,
  type WalkPosition,
} from "../../records/edge/shard-walk.ts";
import { countedRead } from "../../../api/handlers/ledger-access.ts";
import { authorizeMove, movedClaimsOf } from "./moved-claims.ts";

/** The leases that an answer names. */
const MOST_LEASES = 100;

/** Where a plan continues, and what the calls before it have counted on that shard. */
interface PlanPosition {
  walk: WalkPosition<BucketKey>;
  counted: number;
  /** The number of shards that are counted. */
  shards: number;
}

interface Counted {
  counts: TransferPlan["counts"];
  present: number;
  leases: TransferPlan["leases"];
  transfers: Set<string>;
  /** The shards with more claims than a transfer moves. */
  tooLarge: number[];
  next: PlanPosition | null;
}

/** Counts what a transfer would move, on all shards, as far as one request gets. */
export const planTransfer: Handler<(typeof transferRoutes)["planTransfer"]> = async (call) => {
  const { deployment, tokens, principal, routeId, body } = call;
  const moved = movedClaimsOf(call);
  if (!moved.ok) return moved;
  const { from, to, scope } = moved.value;
  const tokenScope = [routeId, principal.role, principal.cell, from, to, scope];
  const position = await tokens.read<PlanPosition>(tokenScope, body.cursor, badCursor);
  if (!position.ok) return position;
  const outdated = await grownSince("cursor", call, position);
  if (outdated !== undefined) return outdated;
  const allowed = await authorizeMove(call, moved.value);
  if (!allowed.ok) return allowed;
  const counted = await countedRead({ ...call, params: { cell: from } }, () =>
    countMoved(call, { from, to, scope }, position.value),
  );
  if (!counted.ok) return counted;
  const { counts, present, leases, next } = counted.value;
  const types = await deployment.types.forAnswer(
    counts.flatMap(({ sourceType, type }) => [
      { kind: "source" as const, number: sourceType },
      { kind: "bucket" as const, number: type },
    ]),
  );
  if (!types.ok) return types;
  const status = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
    deployment.objects.ledger(to).status(deployment.envelope),
  );
  if (!status.ok) return status;
  // Only an answer about all shards shows that nothing would be moved.
  const isEmpty = position.value === undefined && next === null && counts.length === 0;
  const plan = {
    from,
    to,
    scope,
    claims: counts.map(({ sourceType, type, claims }) => ({
      source_type: types.value.numbered("source", sourceType)?.name ?? "",
      bucket_type: types.value.numbered("bucket", type)?.name ?? "",
      count: claims,
    })),
    claims_total: counts.reduce((sum, { claims }) => sum + claims, 0),
    // The claims of the destination are only for operators (Y7).
    present_claims: principal.cell === null ? present : null,
    leases: leases.slice(0, MOST_LEASES).map((lease) => ({ cell_id: from, uuid: lease })),
    obstacles: [
      ...(isEmpty ? [`cell ${from} has no claims of the scope`] : []),
      ...obstaclesOf(call, counted.value, to, status.value),
    ],
    cursor: next && (await tokens.make(tokenScope, next)),
  };
  return ok({ status: 200, body: { plan } });
};

async function countMoved(
  { deployment }: Call<(typeof transferRoutes)["planTransfer"]>,
  moved: { from: string; to: string; scope: string },
  position: PlanPosition | undefined,
): Promise<Result<Counted>> {
  const { envelope, objects, shards } = deployment;
  const { limits } = deployment.config;
  const counts = new Map<string, TransferPlan["counts"][number]>();
  const perShard = new Map<number, number>();
  if (position !== undefined) perShard.set(position.walk.shard, position.counted);
  const counted = { present: 0, leases: [] as TransferPlan["leases"], transfers: new Set<string>() };
  const next = await walkShards({
    shards,
    width: limits.fanOut,
    from: position?.walk ?? FIRST_SHARD,
    budget: walkBudget(),
    read: async (shard, behind: BucketKey | null) => {
      const part = await reach(readTimeoutMs(limits), { name: `shard ${shard}` }, () =>
        objects.shard(shard).planTransfer({ ...envelope, ...moved, behind }),
      );
      return part.ok ? ok({ shard, ...part.value }) : part;
    },
    add: (part) => {
      counted.present += part.present;
      counted.leases.push(...part.leases);
      if (part.transfer !== null) counted.transfers.add(`${part.transfer.to}-${part.transfer.id}`);
      perShard.set(part.shard, (perShard.get(part.shard) ?? 0) + part.present);
      for (const { sourceType, type, claims } of part.counts) {
        const key = `${sourceType} ${type}`;
        counts.set(key, { sourceType, type, claims: (counts.get(key)?.claims ?? 0) + claims });
        perShard.set(part.shard, (perShard.get(part.shard) ?? 0) + claims);
      }
    },
  });
  if (!next.ok) return next;
  const walk = next.value;
  return ok({
    ...counted,
    counts: [...counts.values()].toSorted((a, b) => a.sourceType - b.sourceType || a.type - b.type),
    tooLarge: [...perShard].flatMap(([shard, claims]) => (claims > limits.transferClaims ? shard : [])),
    next: walk && { walk, shards, counted: walk.cursor === null ? 0 : (perShard.get(walk.shard) ?? 0) },
  });
}

/** What a prepare would be refused for, as far as this call has read. */
function obstaclesOf(
  { deployment, principal }: Call<(typeof transferRoutes)["planTransfer"]>,
  { leases, transfers, tooLarge }: Counted,
  to: string,
  { state }: CellStatus,
): string[] {
  const { transferClaims } = deployment.config.limits;
  // Transfers of other cells are not for a cell. Its own ones are in its list.
  const holders = principal.cell === null ? [...transfers].map((id) => `the transfer ${id}`) : ["a transfer"];
  return [
    ...(state === "ACTIVE" ? [] : [`cell ${to} is ${state}`]),
    ...(leases.length === 0 ? [] : ["leases of the source hold names of the scope"]),
    ...(transfers.size === 0 ? [] : holders.map((holder) => `${holder} holds the scope`)),
    ...tooLarge.map((shard) => `shard ${shard} has more than ${transferClaims} claims of the scope`),
  ];
}
