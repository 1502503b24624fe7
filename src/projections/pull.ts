import { eq, getTableColumns, sql, type SQL } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { abovePoints, isSamePoint } from "../core/history.ts";
import type { HistoryPoint, OpenLease, PullAnswer } from "../core/messages.ts";
import type { Answer } from "../core/ports.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { Env } from "../env.ts";
import { Database, runBatch } from "./database.ts";
import { causeOf } from "./failure.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "./cron-run.ts";
import { cells } from "./schema.ts";

export interface PullTarget {
  cell: string;
  locationHint: string | null;
  /** The cursor in D1: it has every change up to this position. */
  position: number;
  /** The newest point of the ledger that D1 remembers; null before the first pull. */
  seen: HistoryPoint | null;
}

export interface PullResult {
  /** The cursor after the pull. */
  position: number;
  /** The pages that were requested. */
  pages: number;
  rows: number;
  /** When the page was requested that reached the ledger's end; null if no page reached it. */
  completeAtMs: number | null;
  /** What the ledger has seen of the directory. */
  directory: HistoryPoint | null;
  error: string | null;
  /** Whether another run has moved the cursor, and copies what is left. */
  isOvertaken: boolean;
}

/**
 * Copies the open leases of one ledger into D1, page by page: it adds those that were granted, and deletes
 * those that were decided. A lease that is decided before a run reads it never gets there. Each page is
 * written in one transaction with the cursor and the ledger's point, and only if the cursor is where the page
 * begins. So runs at the same time don't mix their pages.
 *
 * Each request carries the point that D1 remembers, so a ledger that went back in time notices it (H4).
 */
export class LedgerPull {
  readonly #run: CronRun;
  readonly #target: PullTarget;
  readonly result: PullResult;
  /** The point that D1 has, if no other run has replaced it. */
  #seen: HistoryPoint | null;

  constructor(run: CronRun, target: PullTarget) {
    this.#run = run;
    this.#target = target;
    this.#seen = target.seen;
    this.result = {
      position: target.position,
      pages: 0,
      rows: 0,
      completeAtMs: null,
      directory: null,
      error: null,
      isOvertaken: false,
    };
  }

  /** Copies one page. Returns true if there are more. */
  async next(): Promise<boolean> {
    this.result.pages += 1;
    try {
      return await this.#copyPage();
    } catch (error) {
      // A bug, or a row of another version, affects only this cell.
      return this.#fail(causeOf({ cause: String(error) }));
    }
  }

  /** The cursor is somewhere else. Another run that is ahead of this one goes on with the rest. */
  async #endEarly(): Promise<false> {
    const cursor = await readCursor(this.#run.database, this.#target.cell);
    if (!cursor.ok) return this.#fail(causeOf(cursor));
    if (cursor.value > this.result.position) this.result.isOvertaken = true;
    else this.#fail("D1 was restored during the run; the next run continues from its cursor");
    return false;
  }

  #fail(error: string): false {
    this.result.error = error;
    return false;
  }

  async #copyPage(): Promise<boolean> {
    const { database, runtime } = this.#run;
    const { cell } = this.#target;
    const askedAtMs = runtime.clock.now();
    const answer = await askPage(this.#run, this.#target, this.result.position, this.#seen);
    if (answer.kind !== "ok") return this.#fail(causeOf(answer));
    const page = answer.value;
    const { point, throughPosition, more, directory } = page;
    this.result.directory = directory;
    const isNews = point !== null && !isSamePoint(this.#seen, point);
    if (isNews || throughPosition > this.result.position) {
      const told = isNews ? { sent: this.#seen, point } : undefined;
      const saved = await save(database, { cell, after: this.result.position, ...page, told });
      if (!saved.ok) return this.#fail(causeOf(saved));
      if (!saved.value) return this.#endEarly();
      this.#seen = point;
      this.result.position = throughPosition;
      this.result.rows += page.granted.length;
    }
    if (!more) this.result.completeAtMs = askedAtMs;
    return more;
  }
}

/** Returns a point that is not below what D1 has seen of a ledger, nor below what it has copied. */
export async function readLedgerPoint(env: Env, cell: string): Promise<Result<HistoryPoint | undefined>> {
  const { seen, pulledPosition } = getTableColumns(cells);
  const found = await new Database(env).run("read ledger point", (orm) =>
    orm.select({ seen, pulledPosition }).from(cells).where(eq(cells.cellId, cell)),
  );
  if (!found.ok) return found;
  const [row] = found.value;
  if (row?.seen == null) return ok(undefined);
  return ok(abovePoints(row.seen, { incarnation: 0, position: row.pulledPosition }));
}

async function readCursor(database: Database, cell: string): Promise<Result<number>> {
  const { cellId, pulledPosition } = getTableColumns(cells);
  const found = await database.run("read cursor", (orm) =>
    orm.select({ pulledPosition }).from(cells).where(eq(cellId, cell)),
  );
  return found.ok ? ok(found.value[0]?.pulledPosition ?? 0) : found;
}

/** Requests one page. */
function askPage(
  { envelope, limits, objects, runtime }: CronRun,
  { cell, locationHint }: PullTarget,
  afterPosition: number,
  seen: HistoryPoint | null,
): Promise<Answer<PullAnswer>> {
  const message = {
    ...envelope,
    ...(seen === null ? {} : { seen }),
    afterPosition,
    limit: limits.pullRows,
  };
  return ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.ledger(cell, locationHint).pull(message));
}

interface SavedPage extends Pick<PullAnswer, "granted" | "decided" | "throughPosition"> {
  cell: string;
  /** The cursor in D1 from which on the page was read. */
  after: number;
  /** The point that the ledger was asked for, and the one that D1 shall remember instead (H5). */
  told: { sent: HistoryPoint | null; point: HistoryPoint } | undefined;
}

/**
 * Writes a page and moves the cursor. Returns false if the cursor in D1 is somewhere else, because another
 * run has moved it, or because D1 was restored or is new. Then nothing changes. A page that was written by an
 * earlier attempt may be written again, as long as nothing came after it.
 */
async function save(database: Database, page: SavedPage): Promise<Result<boolean>> {
  const { cell, after, throughPosition: through, granted, decided, told } = page;
  const isInPlace = sql`
    EXISTS (SELECT 1 FROM cells WHERE cell_id = ${cell} AND pulled_position IN (${after}, ${through}))`;
  const statements = [
    ...(granted.length === 0 ? [] : [insertOpen(cell, granted, isInPlace)]),
    ...(decided.length === 0 ? [] : [deleteDecided(cell, decided, isInPlace)]),
    sql`UPDATE cells SET pulled_position = ${through}
          ${told === undefined ? sql`` : sql`, seen = ${nextSeen(told)}`}
        WHERE cell_id = ${cell} AND ${isInPlace} RETURNING cell_id`,
  ];
  const saved = await database.run("save leases", (orm) => runBatch(orm, statements), statements.length);
  return saved.ok ? ok(saved.value.at(-1)?.length === 1) : saved;
}

const insertOpen = (cell: string, granted: readonly OpenLease[], isInPlace: SQL): SQL => {
  const rows = granted.map(({ createdPosition, lease, createdAtMs, counts }) => {
    const { creates, destroys, replaces, missing } = counts;
    return [createdPosition, lease, createdAtMs, creates, destroys, replaces, missing];
  });
  return sql`
    INSERT INTO open_leases
      (cell_id, created_position, uuid, created_at_ms, creates, destroys, replaces, missing)
    SELECT ${cell}, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(${JSON.stringify(rows)}) WHERE ${isInPlace}
    ON CONFLICT DO UPDATE SET
      uuid = excluded.uuid, created_at_ms = excluded.created_at_ms, creates = excluded.creates,
      destroys = excluded.destroys, replaces = excluded.replaces, missing = excluded.missing
    WHERE uuid <> excluded.uuid`;
};

const deleteDecided = (cell: string, decided: readonly number[], isInPlace: SQL): SQL => sql`
  DELETE FROM open_leases
  WHERE cell_id = ${cell} AND created_position IN (SELECT value FROM json_each(${JSON.stringify(decided)}))
    AND ${isInPlace}`;

/** Keeps the stored point if another run has replaced it, because the ledger has not confirmed that one. */
function nextSeen({ sent, point }: { sent: HistoryPoint | null; point: HistoryPoint }): SQL {
  const known = sent === null ? null : storedPoint(sent);
  return sql`iif(${cells.seen} IS ${known}, ${storedPoint(point)}, ${cells.seen})`;
}

const storedPoint = ({ incarnation, position }: HistoryPoint): string =>
  JSON.stringify({ incarnation, position });
