import { and, eq, getTableColumns, gte, sql, type SQL } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { abovePoints, isSamePoint } from "../core/history.ts";
import type { HistoryPoint, LeaseChange, PullAnswer } from "../core/messages.ts";
import type { Answer } from "../core/ports.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { Env } from "../env.ts";
import { Database, type Orm } from "./database.ts";
import { causeOf } from "./failure.ts";
import { inStatements, jsonArray, type JsonRow } from "./json-rows.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "./cron-run.ts";
import { cells, leases } from "./schema.ts";

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
}

/**
 * Copies the changes of one ledger into D1, the oldest first, page by page. Each page is written in one
 * transaction with the cursor and the ledger's point. Several runs may do this at the same time: only a later
 * change overwrites a row, and the cursor only moves forward from where it is.
 *
 * Each request carries the point that D1 remembers, so a ledger that went back in time notices it (H4).
 */
export class LedgerPull {
  readonly #run: CronRun;
  readonly #target: PullTarget;
  readonly result: PullResult;
  #after: number;
  /** The point that D1 has, if no other run has replaced it. */
  #seen: HistoryPoint | null;

  constructor(run: CronRun, target: PullTarget) {
    this.#run = run;
    this.#target = target;
    this.#after = target.position;
    this.#seen = target.seen;
    this.result = {
      position: target.position,
      pages: 0,
      rows: 0,
      completeAtMs: null,
      directory: null,
      error: null,
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

  #fail(error: string): false {
    this.result.error = error;
    return false;
  }

  async #copyPage(): Promise<boolean> {
    const { database, runtime } = this.#run;
    const { cell } = this.#target;
    const askedAtMs = runtime.clock.now();
    const answer = await askPage(this.#run, this.#target, this.#after, this.#seen);
    if (answer.kind !== "ok") return this.#fail(causeOf(answer));
    const { point, changes, throughPosition, more, directory } = answer.value;
    this.result.directory = directory;
    const isNews = point !== null && !isSamePoint(this.#seen, point);
    const parts: ChangeRow[][] = inStatements(changes.map(rowOf));
    if (parts.length === 0 && isNews) parts.push([]);
    for (const part of parts) {
      const told = isNews ? { sent: this.#seen, point } : undefined;
      const saved = await save(database, cell, this.result.position, part, told);
      if (!saved.ok) return this.#fail(causeOf(saved));
      if (!saved.value)
        return this.#fail("D1 was restored during the run; the next run continues from there");
      this.#seen = point;
      this.result.position = part.at(-1)?.position ?? this.result.position;
      this.result.rows += part.length;
    }
    this.#after = throughPosition;
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

interface ChangeRow extends JsonRow {
  position: number;
}

function rowOf(change: LeaseChange): ChangeRow {
  const json = JSON.stringify({
    cell_id: change.cell,
    created_position: change.createdPosition,
    uuid: change.lease,
    state: change.state,
    position: change.position,
    created_at_ms: change.createdAtMs,
    decided_at_ms: change.decidedAtMs ?? null,
    decided_by: change.decidedBy ?? null,
    reason: change.reason ?? null,
    ...change.counts,
  });
  return { position: change.position, json };
}

/**
 * Writes the changes after `after` up to the last of the rows, and moves the cursor. Returns false if the
 * cursor in D1 is now before `after`, because D1 was restored or is new. Then the cursor stays, so that no
 * change is skipped.
 *
 * @param told the point that the ledger was asked for, and the one that D1 shall remember instead (H5)
 */
async function save(
  database: Database,
  cell: string,
  after: number,
  rows: readonly ChangeRow[],
  told: { sent: HistoryPoint | null; point: HistoryPoint } | undefined,
): Promise<Result<boolean>> {
  const through = rows.at(-1)?.position ?? after;
  const move = (orm: Orm) =>
    orm
      .update(cells)
      .set({
        pulledPosition: sql`max(${cells.pulledPosition}, ${through})`,
        ...(told === undefined ? {} : { seen: nextSeen(told) }),
      })
      .where(and(eq(cells.cellId, cell), gte(cells.pulledPosition, after)))
      .returning({ position: cells.pulledPosition });
  const saved = await database.run(
    "save leases",
    async (orm) =>
      rows.length === 0 ? await move(orm) : (await orm.batch([upsertLeases(orm, rows), move(orm)]))[1],
    rows.length === 0 ? 1 : 2,
  );
  return saved.ok ? { ok: true, value: saved.value.length > 0 } : saved;
}

/** Keeps the stored point if another run has replaced it, because the ledger has not confirmed that one. */
function nextSeen({ sent, point }: { sent: HistoryPoint | null; point: HistoryPoint }): SQL {
  const known = sent === null ? null : storedPoint(sent);
  return sql`iif(${cells.seen} IS ${known}, ${storedPoint(point)}, ${cells.seen})`;
}

const storedPoint = ({ incarnation, position }: HistoryPoint): string =>
  JSON.stringify({ incarnation, position });

/** The columns, whose names are also the keys of the JSON rows. */
const columns = Object.entries(getTableColumns(leases)).map(([key, { name }]) => ({ key, name }));
const values = sql.join(
  columns.map(({ name }) => sql.raw(`value ->> '${name}'`)),
  sql`, `,
);
const excluded = Object.fromEntries(columns.map(({ key, name }) => [key, sql.raw(`excluded.${name}`)]));

/** Writes all rows in one statement. Only a later change overwrites a row, so repeating it has no effect. */
const upsertLeases = (orm: Orm, rows: readonly JsonRow[]) =>
  orm
    .insert(leases)
    .select(sql`SELECT ${values} FROM json_each(${jsonArray(rows)}) WHERE true`)
    .onConflictDoUpdate({
      target: [leases.cellId, leases.createdPosition],
      set: excluded,
      setWhere: sql`excluded.position > ${leases.position}`,
    });
