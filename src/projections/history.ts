import { lt, sql } from "drizzle-orm";
import { positionAt } from "../core/ledger/position.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { Database } from "./database.ts";
import { cronRuns } from "./schema.ts";

/** The rows that one statement deletes. D1 allows a statement 30 s. */
const STEP_ROWS = 5_000;
/** The statements of one run. Together they delete as many rows as a run can pull in a minute. */
const MAX_STEPS = 10;

/**
 * Deletes leases that were decided before `beforeMs`, and earlier runs of the cron. The work of one run is
 * limited; the next run continues. Outstanding leases stay, whatever their age. Returns the number of deleted
 * leases.
 */
export async function pruneHistory(database: Database, beforeMs: number): Promise<Result<number>> {
  const runs = await database.run("prune runs", (orm) =>
    orm.delete(cronRuns).where(lt(cronRuns.startedAtMs, beforeMs)),
  );
  if (!runs.ok) return runs;
  let total = 0;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const pruned = await database.run("prune leases", (orm) => orm.run(deleteDecided(beforeMs)));
    if (!pruned.ok) return pruned;
    total += pruned.value.meta.changes;
    if (pruned.value.meta.changes < STEP_ROWS) break;
  }
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
