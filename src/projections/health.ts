import { desc, isNotNull, sql } from "drizzle-orm";
import type { Env } from "../env.ts";
import { Database } from "./database.ts";
import { cells, cronRuns } from "./schema.ts";

/** Short, because a health check has to answer before its caller's timeout. */
const TIMEOUT_MS = 1_000;

/** Runs may overlap or be killed, so the latest finished run may not be the latest one. */
const RUNS = 10;

export interface ProjectionHealth {
  /** Whether D1 answers and has its tables. */
  d1: "up" | "down";
  /** The latest run of the cron that finished; null if there is none. */
  cron: { finishedAtMs: number; cellsFailed: number } | null;
  /** Cells whose last visit by the cron failed: at most `maxSuspects`, and none if that run had none. */
  suspects: string[];
}

/** What D1 says about itself and about the last run of the cron. It takes one or two small reads. */
export async function projectionHealth(env: Env, maxSuspects: number): Promise<ProjectionHealth> {
  const database = new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 });
  const runs = await database.run("health", (orm) =>
    orm
      .select({ finishedAtMs: cronRuns.finishedAtMs, cellsFailed: cronRuns.cellsFailed })
      .from(cronRuns)
      .orderBy(desc(cronRuns.startedAtMs))
      .limit(RUNS),
  );
  if (!runs.ok) return { d1: "down", cron: null, suspects: [] };
  const last = runs.value.find(({ finishedAtMs }) => finishedAtMs !== null);
  const cron =
    last?.finishedAtMs == null ? null : { finishedAtMs: last.finishedAtMs, cellsFailed: last.cellsFailed };
  if (cron === null || cron.cellsFailed === 0) return { d1: "up", cron, suspects: [] };
  // In random order, so that every failed cell is asked about sooner or later if there are many.
  const failed = await database.run("read failed cells", (orm) =>
    orm
      .select({ cell: cells.cellId })
      .from(cells)
      .where(isNotNull(cells.lastError))
      .orderBy(sql`random()`)
      .limit(maxSuspects),
  );
  return failed.ok
    ? { d1: "up", cron, suspects: failed.value.map(({ cell }) => cell) }
    : { d1: "down", cron, suspects: [] };
}
