import { count, desc, isNull, min } from "drizzle-orm";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import { Database } from "../../../d1/database.ts";
import { cells, cronRuns } from "../../../d1/schema.ts";
import { readsOfD1 } from "../../families.ts";
import type { CronEnd, ProjectionMetrics } from "./family.ts";

/** Short, because a scrape has to answer before its timeout. */
const TIMEOUT_MS = 1_000;

/** The latest runs of the cron that are looked at. */
const RUNS = 10;

/** A run that began longer ago and has no end was killed. The next run begins after a minute. */
const LONGEST_RUN_MS = 120_000;

/** Reads what the cron has left in D1. It takes five small reads. */
export async function projectionMetrics(env: Env, nowMs: number): Promise<Result<ProjectionMetrics>> {
  const database = new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 });
  const runs = await database.run("read runs", (orm) =>
    orm.select().from(cronRuns).orderBy(desc(cronRuns.startedAtMs)).limit(RUNS),
  );
  if (!runs.ok) return runs;
  const copies = await database.run("read copies", (orm) =>
    orm
      .select({
        cells: count(),
        copied: count(cells.lastPulledAtMs),
        oldestCopyMs: min(cells.lastPulledAtMs),
        failed: count(cells.lastError),
      })
      .from(cells)
      // The ledgers of removed cells are not copied any more.
      .where(isNull(cells.closedAtMs)),
  );
  if (!copies.ok) return copies;
  const [{ cells: known, copied, oldestCopyMs, failed } = NO_CELLS] = copies.value;
  const ends = runs.value.flatMap(({ finishedAtMs, error, ...run }): CronEnd[] =>
    finishedAtMs === null ? [] : [{ ...run, finishedAtMs, hasFailed: error !== null }],
  );
  const wasKilled = ({ startedAtMs, finishedAtMs }: (typeof runs.value)[number]): boolean =>
    finishedAtMs === null && startedAtMs < nowMs - LONGEST_RUN_MS;
  const own: Partial<ProjectionMetrics> = {
    lastRun: ends[0] ?? null,
    failedRuns: runs.value.filter(wasKilled).length + ends.filter(({ hasFailed }) => hasFailed).length,
    oldestCopyMs,
    cellsNeverCopied: known - copied,
    cellsFailed: failed,
  };
  for (const read of readsOfD1) {
    const others = await read(database, nowMs);
    if (!others.ok) return others;
    Object.assign(own, others.value);
  }
  return ok(own as ProjectionMetrics);
}

/** An aggregate always has a row. */
const NO_CELLS = { cells: 0, copied: 0, oldestCopyMs: null, failed: 0 };
