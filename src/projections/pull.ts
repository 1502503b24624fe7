import { and, eq, getTableColumns, gte, sql } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { encodePayload } from "../core/ledger/payload.ts";
import type { LeaseChange, PullAnswer } from "../core/messages.ts";
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
}

export interface PullResult {
  /** The cursor after the pull. */
  position: number;
  rows: number;
  /** When the page was requested that reached the ledger's end; null if no page reached it. */
  completeAtMs: number | null;
  error: string | null;
}

/** The pages of one cell in one run. This leaves pages for other cells if one is far behind. */
const MAX_PAGES = 100;

/**
 * Copies the changes of one ledger into D1, the oldest first. Each page is written in one transaction with
 * the cursor. Several runs may do this at the same time: only a later change overwrites a row, and the cursor
 * only moves forward from where it is.
 */
export async function pullLedger(run: CronRun, target: PullTarget): Promise<PullResult> {
  const { cell } = target;
  let { position } = target;
  let rows = 0;
  const end = (completeAtMs: number | null, error: string | null = null): PullResult => ({
    position,
    rows,
    completeAtMs,
    error,
  });
  // The change at the cursor is requested again. If the ledger lacks it, the ledger was restored from a
  // backup, or has pruned it.
  let after = Math.max(0, position - 1);
  for (let page = 0; page < MAX_PAGES && run.pagesLeft > 0; page += 1) {
    const askedAtMs = run.runtime.clock.now();
    if (askedAtMs >= run.deadlineMs) break;
    const answer = await askPage(run, target, after);
    if (answer.kind !== "ok") return end(null, causeOf(answer));
    const { changes, throughPosition, prunedPosition, more } = answer.value;
    if (changes.length === 0 && after < position && position > prunedPosition) {
      run.runtime.log("ledger_lost_changes", { cell, position });
      const reset = await resetCursor(run.database, cell, position);
      if (!reset.ok) return end(null, causeOf(reset));
      position = 0;
      after = 0;
      continue;
    }
    const fresh = changes.filter((change) => change.position > position).map(rowOf);
    for (const part of inStatements(fresh)) {
      run.pagesLeft -= 1;
      const saved = await save(run.database, cell, position, part);
      if (!saved.ok) return end(null, causeOf(saved));
      if (!saved.value) return end(null, "D1 was restored during the run; the next run continues from there");
      position = (part.at(-1) ?? part[0]).position;
      rows += part.length;
    }
    if (!more) return end(askedAtMs);
    after = throughPosition;
  }
  return end(null);
}

/** Requests one page. The ledger also limits its size in bytes. */
function askPage(
  { envelope, limits, objects, runtime }: CronRun,
  { cell, locationHint }: PullTarget,
  afterPosition: number,
): Promise<Answer<PullAnswer>> {
  return ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
    objects.ledger(cell, locationHint).pull({ ...envelope, afterPosition, limit: limits.pullRows }),
  );
}

interface ChangeRow extends JsonRow {
  position: number;
}

function rowOf(change: LeaseChange): ChangeRow {
  const head = JSON.stringify({
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
  // The payload is embedded as JSON. As a string, its quotation marks would be escaped, which nearly doubles
  // its size.
  const payload = change.ops === undefined ? "null" : encodePayload(change.ops);
  return { position: change.position, json: `${head.slice(0, -1)},"payload":${payload}}` };
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
  const through = (rows.at(-1) ?? rows[0]).position;
  const saved = await database.run("save leases", (orm) =>
    orm.batch([
      upsertLeases(orm, rows),
      orm
        .update(cells)
        .set({ pulledPosition: sql`max(${cells.pulledPosition}, ${through})` })
        .where(and(eq(cells.cellId, cell), gte(cells.pulledPosition, after)))
        .returning({ position: cells.pulledPosition }),
    ]),
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

/** Sets the cursor to 0, unless another run has moved it since. */
function resetCursor(database: Database, cell: string, position: number): Promise<Result<unknown>> {
  return database.run("reset cursor", (orm) =>
    orm
      .update(cells)
      .set({ pulledPosition: 0 })
      .where(and(eq(cells.cellId, cell), eq(cells.pulledPosition, position))),
  );
}
