import { eq, sql, type SQL } from "drizzle-orm";
import { ask } from "../../../kernel/ask.ts";
import { isSamePoint } from "../../../kernel/instances.ts";
import type { HistoryPoint } from "../../../kernel/messages.ts";
import type { KnownLease, OpenLease, Pull, PullAnswer } from "../messages.ts";
import type { Answer } from "../../../kernel/ports.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import { Database, runBatch, causeOf } from "../../../d1/database.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "../../../cron/cron-run.ts";
import { cells } from "../../../d1/schema.ts";

/** Leases that D1 has of a cell, in the order of their grants. */
interface KnownPage {
  has: KnownLease[];
  /** D1 has no others up to this position. Null: it has no others. */
  through: number | null;
}

export interface PullTarget {
  cell: string;
  locationHint: string | null;
  /** The first leases that D1 has of the cell. */
  known: KnownPage;
  /** The newest point of the ledger that D1 remembers; null before the first pull. */
  seen: HistoryPoint | null;
}

export interface PullResult {
  /** The pages that were requested. */
  pages: number;
  rows: number;
  /** When the page was requested that reached the ledger's end; null if no page reached it. */
  completeAtMs: number | null;
  /** What the ledger has seen of the directory. */
  directory: HistoryPoint | null;
  error: string | null;
}

/**
 * Compares the leases that D1 has of one cell with those that its ledger has open, page by page, and writes
 * the differences (S4). A page may be out of date when it is written. The next run corrects that.
 *
 * Each request carries the point that D1 remembers, so a ledger that went back in time notices it (H4).
 */
export class LedgerPull {
  readonly #run: CronRun;
  readonly #target: Pick<PullTarget, "cell" | "locationHint">;
  readonly result: PullResult = { pages: 0, rows: 0, completeAtMs: null, directory: null, error: null };
  /** Everything up to this position was compared. */
  #after = 0;
  /** What D1 has after that. Undefined: it was not read. */
  #known: KnownPage | undefined;
  /** The point that D1 has, if no other run has replaced it. */
  #seen: HistoryPoint | null;

  constructor(run: CronRun, target: PullTarget) {
    this.#run = run;
    this.#target = target;
    this.#known = target.known;
    this.#seen = target.seen;
  }

  /** Compares one page. Returns true if there are more. */
  async next(): Promise<boolean> {
    this.result.pages += 1;
    try {
      return await this.#comparePage();
    } catch (error) {
      // A bug, or a row of another version, affects only this cell.
      return this.#fail(causeOf({ cause: String(error) }));
    }
  }

  #fail(error: string): false {
    this.result.error = error;
    return false;
  }

  async #comparePage(): Promise<boolean> {
    const { database, limits, runtime } = this.#run;
    const { cell } = this.#target;
    const read =
      this.#known === undefined
        ? await readKnown(database, cell, this.#after, limits.pullRows)
        : ok(this.#known);
    if (!read.ok) return this.#fail(causeOf(read));
    const known = read.value;
    const askedAtMs = runtime.clock.now();
    const answer = await askPage(this.#run, this.#target, { after: this.#after, ...known }, this.#seen);
    if (answer.kind !== "ok") return this.#fail(causeOf(answer));
    const { granted, decided, through, point, directory } = answer.value;
    this.result.directory = directory;
    const isNews = point !== null && !isSamePoint(this.#seen, point);
    if (isNews || granted.length + decided.length > 0) {
      const told = isNews ? { sent: this.#seen, point } : undefined;
      const saved = await save(database, { cell, granted, decided, told });
      if (!saved.ok) return this.#fail(causeOf(saved));
      this.#seen = point;
      this.result.rows += granted.length;
    }
    if (through === null) {
      this.result.completeAtMs = askedAtMs;
      return false;
    }
    this.#after = through;
    this.#known =
      through === known.through
        ? undefined
        : { ...known, has: known.has.filter(([position]) => position > through) };
    return true;
  }
}

/** Returns the newest point of a ledger that D1 remembers. */
export async function readLedgerPoint(env: Env, cell: string): Promise<Result<HistoryPoint | undefined>> {
  const found = await new Database(env).run("read ledger point", (orm) =>
    orm.select({ seen: cells.seen }).from(cells).where(eq(cells.cellId, cell)),
  );
  return found.ok ? ok(found.value[0]?.seen ?? undefined) : found;
}

/** A column for a query of `cells`: the first leases that D1 has of the cell after a position. */
export const knownLeases = (after: number, limit: number): SQL<KnownLease[]> =>
  sql`(
    SELECT json_group_array(json_array(created_position, uuid)) FROM (
      SELECT created_position, uuid FROM open_leases
      WHERE cell_id = cells.cell_id AND created_position > ${after}
      ORDER BY created_position LIMIT ${limit}
    )
  )`.mapWith((json: string) => JSON.parse(json) as KnownLease[]);

/** Makes a page of leases, of which at most `limit` were read. */
export const knownPage = (has: KnownLease[], limit: number): KnownPage => ({
  has,
  through: has.length < limit ? null : Math.max(...has.map(([position]) => position)),
});

async function readKnown(
  database: Database,
  cell: string,
  after: number,
  limit: number,
): Promise<Result<KnownPage>> {
  const found = await database.run("read open leases", (orm) =>
    orm
      .select({ has: knownLeases(after, limit) })
      .from(cells)
      .where(eq(cells.cellId, cell)),
  );
  return found.ok ? ok(knownPage(found.value[0]?.has ?? [], limit)) : found;
}

/** Requests one page. */
function askPage(
  { envelope, limits, objects, runtime }: CronRun,
  { cell, locationHint }: Pick<PullTarget, "cell" | "locationHint">,
  range: KnownPage & Pick<Pull, "after">,
  seen: HistoryPoint | null,
): Promise<Answer<PullAnswer>> {
  const message = {
    ...envelope,
    ...(seen === null ? {} : { seen }),
    ...range,
    limit: limits.pullRows,
  };
  return ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.ledger(cell, locationHint).pull(message));
}

interface SavedPage extends Pick<PullAnswer, "granted" | "decided"> {
  cell: string;
  /** The point that the ledger was asked for, and the one that D1 shall remember instead (H5). */
  told: { sent: HistoryPoint | null; point: HistoryPoint } | undefined;
}

/** Writes what a page has changed, in one transaction. */
function save(database: Database, { cell, granted, decided, told }: SavedPage): Promise<Result<unknown>> {
  const statements = [
    ...(granted.length === 0 ? [] : [insertOpen(cell, granted)]),
    ...(decided.length === 0 ? [] : [deleteDecided(cell, decided)]),
    ...(told === undefined ? [] : [sql`UPDATE cells SET seen = ${nextSeen(told)} WHERE cell_id = ${cell}`]),
  ];
  return database.run("save leases", (orm) => runBatch(orm, statements), statements.length);
}

const insertOpen = (cell: string, granted: readonly OpenLease[]): SQL => {
  const rows = granted.map(({ createdPosition, lease, createdAtMs, counts }) => {
    const { creates, destroys, replaces, missing } = counts;
    return [createdPosition, lease, createdAtMs, creates, destroys, replaces, missing];
  });
  return sql`
    INSERT INTO open_leases
      (cell_id, created_position, uuid, created_at_ms, creates, destroys, replaces, missing)
    SELECT ${cell}, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(${JSON.stringify(rows)}) WHERE true
    ON CONFLICT DO UPDATE SET
      uuid = excluded.uuid, created_at_ms = excluded.created_at_ms, creates = excluded.creates,
      destroys = excluded.destroys, replaces = excluded.replaces, missing = excluded.missing
    WHERE uuid <> excluded.uuid`;
};

const deleteDecided = (cell: string, decided: readonly number[]): SQL => sql`
  DELETE FROM open_leases
  WHERE cell_id = ${cell} AND created_position IN (SELECT value FROM json_each(${JSON.stringify(decided)}))`;

/** Keeps the stored point if another run has replaced it, because the ledger has not confirmed that one. */
function nextSeen({ sent, point }: { sent: HistoryPoint | null; point: HistoryPoint }): SQL {
  const known = sent === null ? null : storedPoint(sent);
  return sql`iif(${cells.seen} IS ${known}, ${storedPoint(point)}, ${cells.seen})`;
}

const storedPoint = ({ incarnation, position }: HistoryPoint): string =>
  JSON.stringify({ incarnation, position });
