import { ok, type Result } from "../kernel/refusal.ts";
import type { Deployment } from "./deployment.ts";
import { reach, readTimeoutMs } from "./reach.ts";

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
