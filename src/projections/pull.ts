import { and, eq, getTableColumns, gte, sql } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { encodePayload } from "../core/ledger/payload.ts";
import { msOf } from "../core/ledger/position.ts";
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
  /** The cursor that D1 holds: every change up to here is in it. */
  position: number;
}

export interface PullResult {
  /** As in `PullTarget`, after the pull. */
  position: number;
  rows: number;
  /** When the page was asked for that reached the ledger's end; null: it was not reached. */
  completeAtMs: number | null;
  error: string | null;
}

/** Pages of one cell in one run, so that a cell which is far behind leaves some to the others. */
const MAX_PAGES = 100;
/** How far the clocks of a ledger and of this Worker may lie apart before a warning would be wrong. */
const CLOCK_SKEW_MS = 60_000;

/**
 * Copies the changes of one ledger into D1, oldest first, each page and the cursor in one transaction. Any number of runs may do it at the
 * same time: a row is only overwritten by a later change, and the cursor only moves on from where it has come to.
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
  // Asks for the change at the cursor again: a ledger that does not show it is not what it was.
  let after = Math.max(0, position - 1);
  for (let page = 0; page < MAX_PAGES && run.pagesLeft > 0; page += 1) {
    const askedAtMs = run.runtime.clock.now();
    if (askedAtMs >= run.deadlineMs) break;
    const answer = await askPage(run, target, after);
    if (answer.kind !== "ok") return end(null, causeOf(answer));
    const { changes, throughPosition, more } = answer.value;
    if (changes.length === 0 && after < position && cannotBePruned(position, run)) {
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
      if (!saved.value) return end(null, "the fleet record was set back during the run");
      position = (part.at(-1) ?? part[0]).position;
      rows += part.length;
    }
    if (!more) return end(askedAtMs);
    after = throughPosition;
  }
  return end(null);
}

/** The ledger also bounds a page in bytes. */
function askPage(
  { envelope, limits, objects, runtime }: CronRun,
  { cell, locationHint }: PullTarget,
  afterPosition: number,
): Promise<Answer<PullAnswer>> {
  return ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
    objects.ledger(cell, locationHint).pull({ ...envelope, afterPosition, limit: limits.pullRows }),
  );
}

/** A ledger forgets only what is older than its retention. A younger change that is gone: the ledger was restored from a backup. */
function cannotBePruned(position: number, { limits, runtime }: CronRun): boolean {
  const keptMs = Math.min(limits.outcomeRetentionS, limits.outcomeMaxS) * 1_000;
  return msOf(position) > runtime.clock.now() - keptMs + CLOCK_SKEW_MS;
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
  // Inside, not as a string of its own: that would double its quotation marks, and with them its size.
  const payload = change.ops === undefined ? "null" : encodePayload(change.ops);
  return { position: change.position, json: `${head.slice(0, -1)},"payload":${payload}}` };
}

/**
 * Writes the changes in (after, last of the rows]. False: D1 has lost its cursor's place meanwhile (it was restored, or begins again), and
 * the cursor stays, so that nothing is skipped.
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

/** The names of the columns, and the keys of the JSON rows. */
const columns = Object.entries(getTableColumns(leases)).map(([key, { name }]) => ({ key, name }));
const values = sql.join(
  columns.map(({ name }) => sql.raw(`value ->> '${name}'`)),
  sql`, `,
);
const excluded = Object.fromEntries(columns.map(({ key, name }) => [key, sql.raw(`excluded.${name}`)]));

/** One statement for all rows. A change that is not later than what is there is left alone, so it may come any number of times. */
const upsertLeases = (orm: Orm, rows: readonly JsonRow[]) =>
  orm
    .insert(leases)
    .select(sql`SELECT ${values} FROM json_each(${jsonArray(rows)}) WHERE true`)
    .onConflictDoUpdate({
      target: [leases.cellId, leases.createdPosition],
      set: excluded,
      setWhere: sql`excluded.position > ${leases.position}`,
    });

/** Sets the cursor back, unless another run has moved it meanwhile. */
function resetCursor(database: Database, cell: string, position: number): Promise<Result<unknown>> {
  return database.run("reset cursor", (orm) =>
    orm
      .update(cells)
      .set({ pulledPosition: 0 })
      .where(and(eq(cells.cellId, cell), eq(cells.pulledPosition, position))),
  );
}
