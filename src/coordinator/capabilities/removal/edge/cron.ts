import { ask } from "../../../kernel/ask.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "../../../cron/cron-run.ts";
import { causeOf } from "../../../d1/database.ts";
import type { Visit } from "../../projection/edge/visits.ts";

/**
 * Tells the directory of cells whose ledgers say that they are removed, if it does not know that (X5): the
 * operator's call may have ended too early, or the directory went back in time.
 */
export async function tellRemovals(
  { envelope, objects, runtime }: CronRun,
  visits: readonly Visit[],
): Promise<Result<null>> {
  for (const { cell, isRemoved, removed } of visits) {
    if (isRemoved || removed === null) continue;
    const { atMs: removedAtMs, operator } = removed;
    const told = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
      objects.directory().removeCell({ ...envelope, operator, cell, removedAtMs }),
    );
    // A directory that has forgotten the cell is reconciled first (H8).
    const isForgotten = told.kind === "refused" && told.refusal.reason === "CELL_UNKNOWN";
    if (told.kind !== "ok" && !isForgotten)
      return refused(
        "UNAVAILABLE",
        `the directory was not told that cell ${cell} is removed: ${causeOf(told)}`,
      );
  }
  return ok(null);
}
