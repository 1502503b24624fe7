import { desc, isNotNull, sql, and, asc, gt } from "drizzle-orm";
import type { Env } from "../env.ts";
import { Database } from "../d1/database.ts";
import { missingMigrations } from "../d1/migrations.ts";
import { cells, cronRuns } from "../d1/schema.ts";
import { ok, type Result } from "../kernel/refusal.ts";

/** Short, because a health check has to answer before its caller's timeout. */
const TIMEOUT_MS = 1_000;

/** Runs may overlap or be killed, so the latest finished run may not be the latest one. */
const RUNS = 10;

export interface ProjectionHealth {
  /** `outdated`: D1 answers, but lacks migrations of this version, so what needs them fails. */
  d1: "up" | "outdated" | "down";
  missingMigrations: readonly string[];
  /** The latest run of the cron that finished; null if there is none. */
  cron: { finishedAtMs: number; cellsFailed: number } | null;
  /** Cells whose last visit by the cron failed: at most `maxSuspects`, and none if that run had none. */
  suspects: string[];
}

/** What D1 says about itself and about the last run of the cron. It takes two or three small reads. */
export async function projectionHealth(env: Env, maxSuspects: number): Promise<ProjectionHealth> {
  const database = new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 });
  const missing = await missingMigrations(database);
  if (!missing.ok) return { d1: "down", missingMigrations: [], cron: null, suspects: [] };
  const isOutdated = missing.value.length > 0;
  const common = { missingMigrations: missing.value, suspects: [] };
  const answered = { ...common, d1: isOutdated ? "outdated" : "up" } as const;
  // A read may fail because of what D1 lacks.
  const failed = { ...common, d1: isOutdated ? "outdated" : "down" } as const;
  const runs = await database.run("health", (orm) =>
    orm
      .select({ finishedAtMs: cronRuns.finishedAtMs, cellsFailed: cronRuns.cellsFailed })
      .from(cronRuns)
      .orderBy(desc(cronRuns.startedAtMs))
      .limit(RUNS),
  );
  if (!runs.ok) return { ...failed, cron: null };
  const last = runs.value.find(({ finishedAtMs }) => finishedAtMs !== null);
  const cron =
    last?.finishedAtMs == null ? null : { finishedAtMs: last.finishedAtMs, cellsFailed: last.cellsFailed };
  if (cron === null || cron.cellsFailed === 0) return { ...answered, cron };
  // In random order, so that every failed cell is asked about sooner or later if there are many.
  const suspects = await database.run("read failed cells", (orm) =>
    orm
      .select({ cell: cells.cellId })
      .from(cells)
      .where(isNotNull(cells.lastError))
      .orderBy(sql`random()`)
      .limit(maxSuspects),
  );
  return suspects.ok
    ? { ...answered, cron, suspects: suspects.value.map(({ cell }) => cell) }
    : { ...failed, cron };
}

/** A cell whose leases the cron could not copy when it last visited the cell. */
interface FailedCopy {
  cell: string;
  error: string;
  lastPulledAtMs: number | null;
}

interface FailedCopyPage {
  copies: FailedCopy[];
  /** The cell after which the next page begins. Undefined: this is the last page. */
  next: string | undefined;
}

/** Short, because a person waits for this answer. */
const DATABASE_MS = 3_000;

export async function listFailedCopies(
  env: Env,
  limit: number,
  after: string | undefined,
): Promise<Result<FailedCopyPage>> {
  const rows = await new Database(env, { timeoutMs: DATABASE_MS }).run("read failed copies", (orm) =>
    orm
      .select({
        cell: cells.cellId,
        error: cells.lastError,
        lastPulledAtMs: cells.lastPulledAtMs,
      })
      .from(cells)
      .where(and(isNotNull(cells.lastError), after === undefined ? undefined : gt(cells.cellId, after)))
      .orderBy(asc(cells.cellId))
      .limit(limit + 1),
  );
  if (!rows.ok) return rows;
  const copies = rows.value.slice(0, limit).map(({ error, ...copy }) => ({ ...copy, error: error ?? "" }));
  return ok({ copies, next: rows.value.length > limit ? copies.at(-1)?.cell : undefined });
}
