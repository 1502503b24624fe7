import { lt, sql } from "drizzle-orm";
import { ask } from "../kernel/ask.ts";
import { fanOut } from "../kernel/fan-out.ts";
import type { Cell, Snapshot } from "../kernel/directory/messages.ts";
import type { HistoryPoint, ShardWork } from "../kernel/messages.ts";
import type { KnownLease } from "../capabilities/projection/messages.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import { configOf, type Env } from "../env.ts";
import { KnownFormat, KnownPlacement } from "../isolate/known-placement.ts";
import { objectsOf } from "../objects/objects.ts";
import { Witness } from "../capabilities/loss/edge/witness.ts";
import { defaultRuntime } from "../runtime.ts";
import { Database, causeOf, inStatements, jsonArray, type JsonRow } from "../d1/database.ts";
import { copyAudits, pruneAudit } from "../capabilities/audit/edge/cron.ts";
import { pruneCredentialUses } from "../capabilities/keys/edge/credential-uses.ts";
import { continueGrowth, type CronDriver } from "../capabilities/growth/edge/cron.ts";
import { DirectoryWatch } from "../capabilities/loss/edge/directory-watch.ts";
import {
  mirrorCells,
  mirrorGrowth,
  mirrorKeys,
  mirrorTypes,
} from "../capabilities/projection/edge/mirror.ts";
import { CALL_TIMEOUT_MS, END_STATEMENTS, type CronRun } from "./cron-run.ts";
import { isLostBy } from "../capabilities/loss/edge/lost-part.ts";
import { tellRemovals } from "../capabilities/removal/edge/cron.ts";
import { settleOperations } from "../capabilities/operations/edge/cron.ts";
import { cells, cronRuns } from "../d1/schema.ts";
import { knownLeases, knownPage } from "../capabilities/projection/edge/pull.ts";
import { scrub, scrubbedParts } from "../capabilities/scrub/edge/cron.ts";
import { visitLedgers, type Visit, type VisitTarget } from "../capabilities/projection/edge/visits.ts";
import { notify, statementsOfWebhooks } from "../capabilities/webhooks/edge/notify.ts";

export interface CronReport {
  startedAtMs: number;
  finishedAtMs: number;
  durationMs: number;
  /** Cells whose ledger was pulled to its end and woken. */
  cellsPulled: number;
  cellsFailed: number;
  leasesUpserted: number;
  /** The first error that affected the run as a whole. Errors of single cells are stored with the cell. */
  error: string | null;
}

/** A run stops requesting pages after this time, because the next run starts after a minute. */
const RUN_MS = 45_000;
/** How long D1 has the row of a run: a week. */
const KEPT_RUNS_MS = 604_800_000;

/** The leases of a cell that a run reads with the list of cells, so that most cells need no other query. */
const FIRST_ROWS = 50;

/** What D1 has of a cell. */
interface CellCopy {
  cell: string;
  has: KnownLease[];
  seen: HistoryPoint | null;
  visitedAtMs: number | null;
  locationHint: string | null;
  removedAtMs: number | null;
  closedAtMs: number | null;
}

/**
 * Copies the directory and all ledgers into D1, and wakes every ledger and shard (M3). Runs may be missed,
 * late, repeated or overlapping; each compares what D1 has. If D1 is down, the ledgers are still
 * woken. An error of one cell doesn't stop the others.
 */
export async function runCron(
  env: Env,
  scheduledAtMs: number,
  runtime = defaultRuntime,
): Promise<CronReport> {
  const { clock, log } = runtime;
  const startedAtMs = clock.now();
  const { limits, initialShards } = configOf(env);
  const database = new Database(env, {}, runtime);
  const witness = new Witness();
  const placement = new KnownPlacement(initialShards);
  const run: CronRun = {
    placement,
    get envelope() {
      return { placement: placement.current };
    },
    limits,
    objects: objectsOf(env, configOf(env), [new KnownFormat(runtime.speaks), placement, witness]),
    database,
    runtime,
    scheduledAtMs,
    deadlineMs: startedAtMs + RUN_MS,
    reservedStatements: END_STATEMENTS,
  };
  const runId = runtime.uuid();
  const begun = await database.run("begin run", (orm) =>
    orm.insert(cronRuns).values({ startedAtMs, runId, scheduledAtMs }).onConflictDoNothing(),
  );
  run.reservedStatements += await statementsOfWebhooks(database);
  const watch = new DirectoryWatch(run);
  const directory = await watch.readSnapshot();
  const mirrored = directory.ok ? await mirrorSnapshot(database, directory.value) : directory;
  const firstRows = Math.min(FIRST_ROWS, limits.pullRows);
  const copies = await database.run("read cells", (orm) =>
    orm
      .select({
        cell: cells.cellId,
        has: knownLeases(0, firstRows),
        seen: cells.seen,
        visitedAtMs: cells.visitedAtMs,
        locationHint: cells.locationHint,
        removedAtMs: cells.removedAtMs,
        closedAtMs: cells.closedAtMs,
      })
      .from(cells),
  );
  const targets = targetsOf(
    directory.ok ? directory.value.cells : undefined,
    copies.ok ? copies.value : [],
    firstRows,
    startedAtMs,
  );
  const pruned = await database.run("prune runs", (orm) =>
    orm.delete(cronRuns).where(lt(cronRuns.startedAtMs, startedAtMs - KEPT_RUNS_MS)),
  );
  const prunedAudit = await pruneAudit(run, startedAtMs);
  const prunedUses = isFirstOfHour(scheduledAtMs) ? await pruneCredentialUses(run, startedAtMs) : ok(null);
  const [mirroredKeys, { visits, compared }] = await Promise.all([
    mirrorKeys(run, watch),
    visitLedgers(run, targets, watch),
  ]);
  // The ledgers have told how far they have seen each shard, and each shard is told that now (H2). Before the
  // first cell is registered, there is nothing that a shard could do (P2).
  const parts = new Map(
    visits.flatMap(({ cell, isLost }) => (isLost === null ? [] : [[`ledger-${cell}`, isLost]])),
  );
  const isDirectoryLost = directory.ok ? false : directory.refusal.reason === "HISTORY_LOST" || null;
  if (isDirectoryLost !== null) parts.set("directory", isDirectoryLost);
  const works = !directory.ok || directory.value.isPlaced ? await pokeShards(run, witness, parts) : [];
  const told = directory.ok ? await tellRemovals(run, visits) : ok(null);
  const copied = await copyAudits(run, directory.ok, visits, works);
  const marked = await markCells(run, visits);
  const driver: CronDriver = Object.assign(Object.create(run) as CronRun, { clock });
  const settled = directory.ok ? await settleOperations(driver, run.deadlineMs) : ok(null);

  const results = [
    begun,
    directory,
    compared,
    mirrored,
    copies,
    mirroredKeys,
    told,
    settled,
    copied,
    marked,
    pruned,
  ];
  const failed = [...results, prunedAudit, prunedUses].find((result) => !result.ok);
  const finishedAtMs = clock.now();
  const report: CronReport = {
    startedAtMs,
    finishedAtMs,
    durationMs: finishedAtMs - startedAtMs,
    cellsPulled: visits.filter(({ completeAtMs, error }) => completeAtMs !== null && error === null).length,
    cellsFailed: visits.filter(({ error }) => error !== null).length,
    leasesUpserted: visits.reduce((sum, { rows }) => sum + rows, 0),
    error: failed === undefined ? null : causeOf(failed),
  };
  // Ledgers of cells that were registered after the list of cells was read are not visited.
  const auditCopiedAtMs = copied.ok && copied.value ? startedAtMs : null;
  await recordEnd(database, runId, scheduledAtMs, report, auditCopiedAtMs);
  log("cron_run", {
    duration_ms: report.durationMs,
    cells_pulled: report.cellsPulled,
    cells_failed: report.cellsFailed,
    leases_upserted: report.leasesUpserted,
    ...(report.error === null ? {} : { error: report.error }),
  });
  const { error, cellsFailed } = report;
  const statuses = new Map(visits.map(({ cell, reported }) => [cell, reported]));
  const stale = new Map(visits.map(({ cell, staleLeases }) => [cell, staleLeases]));
  const authorities = directory.ok ? directory.value.authorities : null;
  const scrubbed = scrubbedParts(run.objects, visits, works);
  await notify(env, run, { nowMs: finishedAtMs, error, cellsFailed, parts, statuses, stale, authorities });
  if (directory.ok) await continueGrowth(driver, directory.value);
  await scrub(run, scrubbed);
  return report;
}

/** Work that reads a whole table is done once per hour. A run that is missed is made up for an hour later. */
const isFirstOfHour = (scheduledAtMs: number): boolean => scheduledAtMs % 3_600_000 < 60_000;

async function mirrorSnapshot(
  database: Database,
  { cells: registered, types, growth }: Pick<Snapshot, "cells" | "types" | "growth">,
): Promise<Result<unknown>> {
  const mirrored = await mirrorCells(database, registered);
  if (!mirrored.ok) return mirrored;
  const copied = types === null ? ok(null) : await mirrorTypes(database, types);
  return copied.ok && growth !== null ? mirrorGrowth(database, growth) : copied;
}

/**
 * The cells to visit: those that are registered, and those that D1 has, but only one of the removed cells
 * whose ledgers have nothing left to copy. They take turns, because an operator may still reconcile such a
 * ledger, and because it may go back in time (X5). A directory that went back in time may have forgotten
 * cells, and their ledgers know more of it. Cells that were pulled longest ago come first, so that those
 * that this run doesn't reach come first in the next one. Without D1, each run starts with another cell.
 */
function targetsOf(
  registered: readonly Cell[] | undefined,
  copies: readonly CellCopy[],
  firstRows: number,
  nowMs: number,
): VisitTarget[] {
  const copyByCell = new Map(copies.map((row) => [row.cell, row]));
  const visitedAtMs = ({ cell }: { cell: string }): number => copyByCell.get(cell)?.visitedAtMs ?? 0;
  const cellsOfD1 = copies.map(({ cell, locationHint }) => ({ cell, locationHint }));
  const own = new Map(registered?.map((cell) => [cell.cell, cell]));
  const isRemoved = ({ cell }: { cell: string }): boolean =>
    (own.get(cell) ?? copyByCell.get(cell))?.removedAtMs != null;
  const isClosed = (cell: { cell: string }): boolean =>
    isRemoved(cell) && copyByCell.get(cell.cell)?.closedAtMs !== null;
  const all = [...(registered ?? []), ...cellsOfD1.filter(({ cell }) => !own.has(cell))];
  const [turn] = all
    .filter((cell) => isClosed(cell) && copyByCell.has(cell.cell))
    .toSorted((a, b) => visitedAtMs(a) - visitedAtMs(b));
  const known = all.filter((cell) => cell === turn || !isClosed(cell));
  const first = startOf(known.length, nowMs);
  return [...known.slice(first), ...known.slice(0, first)]
    .map(({ cell, locationHint }) => {
      const copy = copyByCell.get(cell);
      return {
        cell,
        locationHint,
        known: copy === undefined ? null : knownPage(copy.has, firstRows),
        seen: copy?.seen ?? null,
        isRemoved: isRemoved({ cell }),
      };
    })
    .toSorted((a, b) => visitedAtMs(a) - visitedAtMs(b));
}

/** Another index each minute, spread evenly over the list. */
function startOf(count: number, nowMs: number): number {
  const turns = Math.floor(nowMs / 60_000) * GOLDEN_RATIO;
  return Math.floor((turns - Math.floor(turns)) * count);
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** What a shard has for a run. Null: it has not said. */
interface PokedShard extends Nullable<ShardWork> {
  shard: number;
}

type Nullable<T> = { [Key in keyof T]: T[Key] | null };

/**
 * Wakes the shards. A shard that lost its alarm would otherwise keep the holds of a begin that ended until
 * another begin meets them (M3). A shard that went back in time learns it here, at the latest (H2). Returns
 * what each of them has for this run.
 */
async function pokeShards(
  { envelope, limits, objects, placement, runtime }: CronRun,
  witness: Witness,
  parts: Map<string, boolean>,
): Promise<PokedShard[]> {
  return fanOut([...Array(placement.shards).keys()], limits.fanOut, async (shard) => {
    let poked: PokedShard = { shard, auditEntries: null, scrub: null };
    for (let left = witness.callsToTell(shard); left > 0; left -= 1) {
      const answer = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
        objects.shard(shard).ping(envelope),
      );
      const isLost = isLostBy(answer);
      if (isLost !== null) parts.set(`shard-${shard}`, isLost);
      if (answer.kind !== "ok") {
        runtime.log("shard_failed", { shard, error: causeOf(answer) });
        return { shard, auditEntries: null, scrub: null };
      }
      poked = { shard, ...answer.value };
    }
    return poked;
  });
}

/** Stores how fresh each cell's copy is. */
async function markCells({ database, runtime }: CronRun, visits: readonly Visit[]): Promise<Result<null>> {
  const nowMs = runtime.clock.now();
  const rows = visits.map((visit) => ({
    json: JSON.stringify({
      cell_id: visit.cell,
      visited_at_ms: visit.pages > 0 ? nowMs : null,
      at_ms: visit.completeAtMs,
      error: visit.error ?? (visit.completeAtMs === null ? INCOMPLETE : null),
      contradicted_at_ms: visit.contradictions?.lastAtMs ?? null,
      contradictions: visit.contradictions?.count ?? null,
      closed_at_ms: hasNothingLeft(visit) ? nowMs : null,
    }),
  }));
  for (const part of inStatements(rows)) {
    const marked = await database.run("mark cells", (orm) => orm.run(updateMarks(part, nowMs)));
    if (!marked.ok) return marked;
  }
  return ok(null);
}

/** Whether nothing of a removed cell is left to copy. An entry that this run has copied is still counted. */
const hasNothingLeft = ({ isRemoved, removed, completeAtMs, error, ...visit }: Visit): boolean =>
  isRemoved &&
  removed !== null &&
  completeAtMs !== null &&
  error === null &&
  visit.auditEntries === 0 &&
  visit.unapplied === 0;

const INCOMPLETE = "one run could not compare all open leases; the next runs try again";

/** A contradiction that is older when it is seen first has nobody to be told. D1 may have been lost. */
const MAX_CONTRADICTION_AGE_MS = 86_400_000;

/** A later contradiction is recognized by its time, which only grows. Runs that overlap change nothing. */
const updateMarks = (rows: readonly JsonRow[], nowMs: number) => sql`
  UPDATE cells SET
    contradiction_seen_at_ms = iif(
      mark.contradicted_at_ms > coalesce(cells.contradicted_at_ms, ${nowMs - MAX_CONTRADICTION_AGE_MS}),
      ${nowMs}, cells.contradiction_seen_at_ms),
    contradictions =
      iif(mark.contradicted_at_ms > coalesce(cells.contradicted_at_ms, 0), mark.contradictions,
      cells.contradictions),
    contradicted_at_ms = nullif(
      max(coalesce(cells.contradicted_at_ms, 0), coalesce(mark.contradicted_at_ms, 0)), 0),
    last_pulled_at_ms =
      coalesce(max(coalesce(cells.last_pulled_at_ms, 0), mark.at_ms), cells.last_pulled_at_ms),
    visited_at_ms = coalesce(mark.visited_at_ms, cells.visited_at_ms),
    last_error = mark.error,
    closed_at_ms = iif(mark.closed_at_ms IS NULL, NULL, coalesce(cells.closed_at_ms, mark.closed_at_ms))
  FROM (
    SELECT value ->> 'cell_id' AS cell_id,
           value ->> 'visited_at_ms' AS visited_at_ms, value ->> 'at_ms' AS at_ms,
           value ->> 'error' AS error, value ->> 'contradicted_at_ms' AS contradicted_at_ms,
           value ->> 'contradictions' AS contradictions, value ->> 'closed_at_ms' AS closed_at_ms
    FROM json_each(${jsonArray(rows)})
  ) AS mark
  WHERE cells.cell_id = mark.cell_id`;

function recordEnd(
  database: Database,
  runId: string,
  scheduledAtMs: number,
  report: CronReport,
  auditCopiedAtMs: number | null,
): Promise<Result<unknown>> {
  const { startedAtMs, finishedAtMs, cellsPulled, cellsFailed, leasesUpserted, error } = report;
  const end = {
    finishedAtMs,
    cellsPulled,
    cellsFailed,
    leasesUpserted,
    error,
    auditCopiedAtMs,
  };
  return database.run("end run", (orm) =>
    orm
      .insert(cronRuns)
      .values({ startedAtMs, runId, scheduledAtMs, ...end })
      .onConflictDoUpdate({ target: [cronRuns.startedAtMs, cronRuns.runId], set: end }),
  );
}
