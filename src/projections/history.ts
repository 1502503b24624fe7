import { lt, sql } from "drizzle-orm";
import { positionAt } from "../core/ledger/position.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { Database } from "./database.ts";
import { cronRuns } from "./schema.ts";

/** Rows that one statement deletes: D1 gives it 30 s. */
const STEP_ROWS = 5_000;
/** Statements of one run: as much in a minute as a run can pull. */
const MAX_STEPS = 10;

/**
 * Forgets decided leases, and runs of the cron, from before `beforeMs`. Bounded: the next run goes on. Outstanding leases stay however old
 * they are. Returns how many leases went.
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
 * What was decided before then also began before then, so a range of each cell's key holds all of it: no index is needed. An outstanding lease
 * has no time of decision, and so is none of it.
 */
const deleteDecided = (beforeMs: number) => sql`
  DELETE FROM leases WHERE (cell_id, created_position) IN (
    SELECT leases.cell_id, leases.created_position
    FROM cells CROSS JOIN leases ON leases.cell_id = cells.cell_id AND leases.created_position < ${positionAt(beforeMs)}
    WHERE leases.decided_at_ms < ${beforeMs}
    LIMIT ${STEP_ROWS}
  )`;
