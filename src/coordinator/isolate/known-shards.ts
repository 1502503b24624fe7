import { refused, ok, type Result } from "../kernel/refusal.ts";
import type { Positions } from "../../users/router/positions.ts";
import type { WaitUntil } from "../runtime.ts";
import { invalid } from "../api/batch.ts";
import type { Deployment } from "./deployment.ts";
import { reach, readTimeoutMs } from "./reach.ts";

/**
 * Returns whether a deployment has at least this many shards. The caller may have heard of a growth before
 * this isolate, so the directory is read first, at most once a second. If there are more shards by then, the
 * work of this request is refused, so that it runs again with them (`Deployment.placed`).
 */
async function hasShards(
  deployment: Deployment,
  waitUntil: WaitUntil,
  count: number,
): Promise<Result<boolean>> {
  const { shards, placement } = deployment;
  if (count <= shards) return ok(true);
  const read = await deployment.directory.recentView(waitUntil);
  if (!read.ok) return read;
  return placement.shards > shards ? outdated : ok(false);
}

const outdated = refused("UNAVAILABLE", "the number of shards has grown; repeat the call", {
  reason: "PLACEMENT_MISMATCH",
  retryAfterMs: 1_000,
});

/** Refuses a shard that the deployment doesn't have. Undefined: it has it. */
export async function unknownShard(
  deployment: Deployment,
  waitUntil: WaitUntil,
  shard: number,
): Promise<Result<never> | undefined> {
  const has = await hasShards(deployment, waitUntil, shard + 1);
  if (!has.ok) return has;
  if (has.value) return undefined;
  const last = deployment.shards - 1;
  return refused("NOT_FOUND", `there is no shard-${shard}; the shards are shard-0 to shard-${last}`);
}

/** Refuses positions of shards that the deployment doesn't have. `field` is the field that has them. */
export async function unknownPositionIn(
  field: string,
  deployment: Deployment,
  waitUntil: WaitUntil,
  positions: Positions | undefined,
): Promise<Result<never> | undefined> {
  const last = Math.max(-1, ...(positions?.keys() ?? []));
  const has = await hasShards(deployment, waitUntil, last + 1);
  if (!has.ok) return has;
  if (has.value) return undefined;
  return invalid(field, `has shard ${last}, but the deployment has only ${deployment.shards} shards`);
}

/**
 * Refuses a position in a walk over the shards that was made with another number of them: the claims that
 * have moved since could be read twice. `field` is the field of its token.
 */
export async function grownSince(
  field: string,
  { deployment, waitUntil }: { deployment: Deployment; waitUntil: WaitUntil },
  position: Result<{ shards: number } | undefined>,
): Promise<Result<never> | undefined> {
  if (!position.ok || position.value === undefined) return undefined;
  const { shards } = position.value;
  const has = await hasShards(deployment, waitUntil, shards);
  if (!has.ok) return has;
  if (shards === deployment.shards) return undefined;
  return invalid(
    field,
    `is from a time when the deployment had ${shards} shards instead of ${deployment.shards}; repeat the ` +
      `call without \`${field}\``,
  );
}

/**
 * Returns whether the shards have confirmed the placement of this Worker, which they do at their first use
 * (P1). False: they were not used yet, or only while the directory could not confirm it. Refused if they have
 * confirmed another one. One shard speaks for all, because the cron wakes all of them as soon as there is a
 * cell.
 */
export async function isPlacementConfirmed({
  objects,
  envelope,
  config,
}: Deployment): Promise<Result<boolean>> {
  const asked = await reach(readTimeoutMs(config.limits), { name: "shard 0" }, () =>
    objects.shard(0).part(envelope),
  );
  if (asked.ok) return ok(true);
  const { reason } = asked.refusal;
  return reason === "NO_CELLS" || reason === "HISTORY_LOST" ? ok(false) : asked;
}
