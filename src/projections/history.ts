import { lt, sql } from "drizzle-orm";
import { positionAt } from "../core/ledger/position.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { CronRun } from "./cron-run.ts";
import { cronRuns } from "./schema.ts";

/** The rows that one statement deletes. D1 allows a statement 30 s. */
const STEP_ROWS = 10_000;
/**
 * The statements of one run. Together they delete a million rows, which is more than a run can write: it has
 * fewer than 500 pages, and a statement of at most 500,000 characters has fewer than 2,000 rows.
 */
const MAX_STEPS = 100;
/** The part of a run that deletes. The rest is for the pulls. */
const PRUNE_MS = 15_000;
/** While D1 is too large, the time for which leases are kept is multiplied by this, step by step. */
const CUT_FACTOR = 0.75;
/** Leases that were decided this recently are kept, however large D1 is. */
const MIN_KEPT_MS = 60_000;

/**
 * Deletes decided leases that are older than `historyS`, and earlier runs of the cron. While D1 is larger
 * than `historyBytes`, younger ones too, the oldest first (S4). Runs before the pulls, so that they cannot
 * keep it from deleting. The work of one run is limited; the next run continues. Outstanding leases stay,
 * whatever their age. Returns the number of deleted leases.
 */
export async function pruneHistory(run: CronRun, nowMs: number): Promise<Result<number>> {
  const { database, limits, runtime } = run;
  const historyMs = limits.historyS * 1_000;
  const deadlineMs = nowMs + PRUNE_MS;
  const runs = await database.run("prune runs", (orm) =>
    orm.delete(cronRuns).where(lt(cronRuns.startedAtMs, nowMs - historyMs)),
  );
  if (!runs.ok) return runs;
  let keptMs = historyMs;
  let total = 0;
  for (let step = 0; step < MAX_STEPS && runtime.clock.now() < deadlineMs; step += 1) {
    const pruned = await database.run("prune leases", (orm) => orm.run(deleteDecided(nowMs - keptMs)));
    if (!pruned.ok) return pruned;
    const { changes, size_after: bytes } = pruned.value.meta;
    total += changes;
    const isTooLarge = bytes > limits.historyBytes;
    if (keptMs < historyMs && !isTooLarge) break;
    if (changes >= STEP_ROWS) continue;
    if (!isTooLarge || keptMs === MIN_KEPT_MS) break;
    keptMs = Math.max(MIN_KEPT_MS, keptMs * CUT_FACTOR);
  }
  if (keptMs < historyMs) runtime.log("history_cut", { kept_ms: Math.round(keptMs), leases: total });
  return ok(total);
}

/**
 * A lease that was decided before `beforeMs` also began before it. So a range of each cell's key contains all
 * of them, and no index is needed. An outstanding lease has no time of decision, so it doesn't match.
 */
const deleteDecided = (beforeMs: number) => sql`
  DELETE FROM leases WHERE (cell_id, created_position) IN (
    SELECT leases.cell_id, leases.created_position
    FROM cells CROSS JOIN leases
      ON leases.cell_id = cells.cell_id AND leases.created_position < ${positionAt(beforeMs)}
    WHERE leases.decided_at_ms < ${beforeMs}
    LIMIT ${STEP_ROWS}
  )`;
