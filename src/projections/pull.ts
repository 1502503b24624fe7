import { and, eq, getTableColumns, gte, isNull, sql } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import type { HistoryPoint, LeaseChange, PullAnswer, SeenChange } from "../core/messages.ts";
import type { Answer } from "../core/ports.ts";
import type { Result } from "../core/refusal.ts";
import type { Database, Orm } from "./database.ts";
import { causeOf } from "./failure.ts";
import { inStatements, jsonArray, type JsonRow } from "./json-rows.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "./cron-run.ts";
import { cells, leases } from "./schema.ts";

export interface PullTarget {
  cell: string;
  locationHint: string | null;
  /** The cursor in D1: it has every change up to this position. */
  position: number;
  /** The latest change in D1; null before the first pull. */
  seen: SeenChange | null;
  /** True if an earlier run found that the ledger lacks `seen`. */
  isLost: boolean;
}

export interface PullResult {
  /** The cursor after the pull. */
  position: number;
  /** The pages that were requested. */
  pages: number;
  rows: number;
  /** When the page was requested that reached the ledger's end; null if no page reached it. */
  completeAtMs: number | null;
  /** True if the ledger lacks a change that was pulled from it before, so it was set back. */
  isBehind: boolean;
  /** What the ledger has seen of the directory. */
  directory: HistoryPoint | null;
  error: string | null;
}

const SET_BACK = "the ledger was set back: it lacks changes that were pulled from it before";

/**
 * Copies the changes of one ledger into D1, the oldest first, page by page. Each page is written in one
 * transaction with the cursor. Several runs may do this at the same time: only a later change overwrites a
 * row, and the cursor only moves forward from where it is.
 */
export class LedgerPull {
  readonly #run: CronRun;
  readonly #target: PullTarget;
  readonly #result: PullResult;
  #after: number;

  constructor(run: CronRun, target: PullTarget) {
    this.#run = run;
    this.#target = target;
    this.#after = target.position;
    this.#result = {
      position: target.position,
      pages: 0,
      rows: 0,
      completeAtMs: null,
      isBehind: target.isLost,
      directory: null,
      error: null,
    };
  }

  get result(): PullResult {
    const { error, isBehind } = this.#result;
    return { ...this.#result, error: error ?? (isBehind ? SET_BACK : null) };
  }

  /** Copies one page. Returns true if there are more. */
  async next(): Promise<boolean> {
    this.#result.pages += 1;
    try {
      return await this.#copyPage();
    } catch (error) {
      // A bug, or a row of another version, affects only this cell.
      return this.#fail(causeOf({ cause: String(error) }));
    }
  }

  #fail(error: string): false {
    this.#result.error = error;
    return false;
  }

  async #copyPage(): Promise<boolean> {
    const { database, runtime } = this.#run;
    const { cell } = this.#target;
    const askedAtMs = runtime.clock.now();
    const answer = await askPage(this.#run, this.#target, this.#after);
    if (answer.kind !== "ok") return this.#fail(causeOf(answer));
    const { lacksSeen, changes, throughPosition, more, directory } = answer.value;
    this.#result.directory = directory;
    if (lacksSeen !== this.#result.isBehind) return this.#noteLoss(lacksSeen);
    for (const part of inStatements(changes.map(rowOf))) {
      const saved = await save(database, cell, this.#result.position, part);
      if (!saved.ok) return this.#fail(causeOf(saved));
      if (!saved.value)
        return this.#fail("D1 was restored during the run; the next run continues from there");
      this.#result.position = (part.at(-1) ?? part[0]).position;
      this.#result.rows += part.length;
    }
    this.#after = throughPosition;
    if (!more) this.#result.completeAtMs = askedAtMs;
    return more;
  }

  /** The ledger lacks `seen` for the first time, or has it again. Returns whether the pull continues. */
  async #noteLoss(isBehind: boolean): Promise<boolean> {
    const { database, runtime } = this.#run;
    const { cell, seen } = this.#target;
    this.#result.isBehind = isBehind;
    runtime.log(isBehind ? "ledger_lost_changes" : "ledger_has_changes_again", {
      cell,
      position: seen?.position ?? 0,
    });
    const marked = await (isBehind ? markLost(this.#run, this.#target) : unmarkLost(database, cell));
    if (!marked.ok) return this.#fail(causeOf(marked));
    if (!isBehind) return true;
    // If another run has marked it, or has moved the cursor, that run starts again.
    if (marked.value.meta.changes === 0) return false;
    this.#result.position = 0;
    this.#after = 0;
    return true;
  }
}

/** Requests one page. */
function askPage(
  { envelope, limits, objects, runtime }: CronRun,
  { cell, locationHint, seen }: PullTarget,
  afterPosition: number,
): Promise<Answer<PullAnswer>> {
  const message = {
    ...envelope,
    afterPosition,
    limit: limits.pullRows,
    ...(seen === null ? {} : { pulled: seen }),
  };
  return ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.ledger(cell, locationHint).pull(message));
}

interface ChangeRow extends JsonRow {
  position: number;
  seen: SeenChange;
}

function rowOf(change: LeaseChange): ChangeRow {
  const { lease, position, createdPosition, state } = change;
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
  return { position, seen: { lease, position, createdPosition, state }, json };
}

/**
 * Writes the changes after `after` up to the last of the rows, and moves the cursor. Returns false if the
 * cursor in D1 is now before `after`, because D1 was restored or is new. Then the cursor stays, so that no
 * change is skipped.
 */
async function save(
  database: Database,
  cell: string,
  after: number,
  rows: readonly [ChangeRow, ...ChangeRow[]],
): Promise<Result<boolean>> {
  const { position: through, seen } = rows.at(-1) ?? rows[0];
  const saved = await database.run(
    "save leases",
    (orm) =>
      orm.batch([
        upsertLeases(orm, rows),
        orm
          .update(cells)
          .set({
            pulledPosition: sql`max(${cells.pulledPosition}, ${through})`,
            // While the ledger lacks a change, that change stays, so that every run finds the same again.
            seen: sql`CASE WHEN ${cells.lostAtMs} IS NULL AND ${cells.pulledPosition} < ${through}
                         THEN ${JSON.stringify(seen)} ELSE ${cells.seen} END`,
          })
          .where(and(eq(cells.cellId, cell), gte(cells.pulledPosition, after)))
          .returning({ position: cells.pulledPosition }),
      ]),
    2,
  );
  return saved.ok ? { ok: true, value: saved.value[1].length > 0 } : saved;
}

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

/**
 * Notes that the ledger was set back, and sets the cursor to 0, so that everything it has now is copied.
 * Changes nothing if another run has done so, or has moved the cursor.
 */
function markLost({ database, runtime }: CronRun, { cell, position }: PullTarget) {
  return database.run("mark lost", (orm) =>
    orm
      .update(cells)
      .set({ pulledPosition: 0, lostAtMs: runtime.clock.now() })
      .where(and(eq(cells.cellId, cell), eq(cells.pulledPosition, position), isNull(cells.lostAtMs))),
  );
}

const unmarkLost = (database: Database, cell: string) =>
  database.run("unmark lost", (orm) =>
    orm.update(cells).set({ lostAtMs: null }).where(eq(cells.cellId, cell)),
  );
