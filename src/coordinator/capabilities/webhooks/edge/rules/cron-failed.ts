import { and, count, gt, isNull, lt } from "drizzle-orm";
import { ok } from "../../../../kernel/refusal.ts";
import { cronRuns } from "../../../../d1/schema.ts";
import type { Rule } from "./rule.ts";

/** A run that began longer ago and has no end was killed. */
const LONGEST_RUN_MS = 120_000;
/** Killed runs are counted for this time. */
const WINDOW_MS = 600_000;

/** Runs of the cron fail, or don't reach a cell. A cron that doesn't run at all can't tell. */
export const cronFailed: Rule = {
  event: "cron_failed",
  resolved: () => "The cron runs without errors again.",
  holds: ({ value }) => value > 0,
  async read({ database }, { nowMs, error, cellsFailed }) {
    const killed = await database.run("read killed runs", (orm) =>
      orm
        .select({ count: count() })
        .from(cronRuns)
        .where(
          and(
            isNull(cronRuns.finishedAtMs),
            gt(cronRuns.startedAtMs, nowMs - WINDOW_MS),
            lt(cronRuns.startedAtMs, nowMs - LONGEST_RUN_MS),
          ),
        ),
    );
    if (!killed.ok) return killed;
    const killedRuns = killed.value[0]?.count ?? 0;
    const causes = [
      ...(error === null ? [] : ["the last run failed"]),
      ...(cellsFailed === 0 ? [] : [`${cellsFailed} cells could not be read`]),
      ...(killedRuns === 0 ? [] : [`${killedRuns} runs had no end`]),
    ];
    const text = `The cron fails: ${causes.join(", ")}. Look for cron_run and cell_failed in the log.`;
    const found = causes.length === 0 ? [] : [{ subject: "cron", cell: null, value: causes.length, text }];
    return ok({ found, isFine: () => true });
  },
};
