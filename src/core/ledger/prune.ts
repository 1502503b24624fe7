import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { Decisions } from "./decisions.ts";
import { positionAt } from "./position.ts";
import type { LedgerStore } from "./store.ts";

/** The rows per transaction and the transactions per call. The cron calls again a minute later. */
const STEP_ROWS = 1_000;
const MAX_STEPS = 20;

/**
 * Deletes outcomes that are applied on every shard, older than the retention and pulled into the projection
 * (S1). If the cron did not run for days, outcomes older than `outcomeMaxS` are deleted without the pull.
 * Returns the number of deleted outcomes.
 */
export async function prune(
  store: LedgerStore,
  commits: GroupCommit,
  decisions: Decisions,
  limits: Limits,
  nowMs: number,
  pulledPosition: number,
): Promise<number> {
  const retained = positionAt(nowMs - limits.outcomeRetentionS * 1_000);
  const atMost = positionAt(nowMs - limits.outcomeMaxS * 1_000);
  const through = Math.min(Math.max(Math.min(pulledPosition, retained), atMost), store.appliedPosition);
  let total = 0;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (!store.hasOutcomeThrough(through)) break;
    const gone = await commits.submit("prune", () => {
      const rows = store.prune(through, STEP_ROWS);
      if (rows.length > 0)
        store.setNumber(
          "pruned_position",
          Math.max(store.number("pruned_position"), ...rows.map(({ position }) => position)),
        );
      decisions.pruned(rows.filter(({ fence }) => fence === 1).length);
      return rows.length;
    });
    total += gone;
    if (gone < STEP_ROWS) break;
  }
  return total;
}
