import { and, asc, gt, isNotNull } from "drizzle-orm";
import { ok, type Result } from "../kernel/refusal.ts";
import type { Env } from "../env.ts";
import { Database } from "../d1/database.ts";
import { cells } from "../d1/schema.ts";

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
