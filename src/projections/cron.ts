import { sql } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { fanOut } from "../core/fan-out.ts";
import type { Cell } from "../core/directory/directory.ts";
import { MESSAGE_VERSION, type SeenChange } from "../core/messages.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import { configOf, type Env } from "../env.ts";
import { objectsOf } from "../objects/objects.ts";
import { defaultRuntime } from "../runtime.ts";
import { Database } from "./database.ts";
import { causeOf } from "./failure.ts";
import { pruneHistory } from "./history.ts";
import { inStatements, jsonArray, type JsonRow } from "./json-rows.ts";
import { mirrorCells, mirrorKeys } from "./mirror.ts";
import { pullLedger, type PullResult, type PullTarget } from "./pull.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "./cron-run.ts";
import { cells, cronRuns } from "./schema.ts";

export interface CronReport {
  startedAtMs: number;
  finishedAtMs: number;
  durationMs: number;
  /** Cells whose ledger was pulled to its end and woken. */
  cellsPulled: number;
  cellsFailed: number;
  /** Cells whose ledger lacks changes that were pulled from it before, so it was set back. */
  cellsBehind: string[];
  leasesUpserted: number;
  leasesPruned: number;
  /** The first error that affected the run as a whole. Errors of single cells are stored with the cell. */
  error: string | null;
}

/** A run stops requesting pages after this time, because the next run starts after a minute. */
const RUN_MS = 45_000;
/** The pages of a run. Each takes two statements, and D1 allows 1,000 per invocation. */
const RUN_PAGES = 400;

/** A cell to visit. Without a cursor (D1 is down), its ledger is woken but not pulled. */
interface CronTarget extends Omit<PullTarget, "position"> {
  position: number | null;
}

interface Visit extends PullResult {
  cell: string;
}

/** A cell's cursor, as D1 has it. */
interface CellCursor {
  cell: string;
  position: number;
  seen: SeenChange | null;
  lostAtMs: number | null;
  lastPulledAtMs: number | null;
}

/**
 * Copies the directory and all ledgers into D1, and wakes every ledger and shard (M3). Runs may be missed,
 * late, repeated or overlapping; each continues from the cursors in D1. If D1 is down, the ledgers are still
 * woken. An error of one cell doesn't stop the others.
 */
export async function runCron(
  env: Env,
  scheduledAtMs: number,
  runtime = defaultRuntime,
): Promise<CronReport> {
  const { clock, log } = runtime;
  const startedAtMs = clock.now();
  const { limits, placement, shards } = configOf(env);
  const database = new Database(env, {}, runtime);
  const run: CronRun = {
    envelope: { version: MESSAGE_VERSION, placement },
    limits,
    objects: objectsOf(env, configOf(env)),
    database,
    runtime,
    deadlineMs: startedAtMs + RUN_MS,
    pagesLeft: RUN_PAGES,
  };
  const runId = runtime.uuid();
  const begun = await database.run("begin run", (orm) =>
    orm.insert(cronRuns).values({ startedAtMs, runId, scheduledAtMs }).onConflictDoNothing(),
  );
  const directory = await readDirectory(run);
  const mirrored = directory.ok ? await mirrorCells(database, directory.value) : directory;
  const cursors = await database.run("read cells", (orm) =>
    orm
      .select({
        cell: cells.cellId,
        position: cells.pulledPosition,
        seen: cells.seen,
        lostAtMs: cells.lostAtMs,
        lastPulledAtMs: cells.lastPulledAtMs,
      })
      .from(cells),
  );
  const targets = targetsOf(directory.ok ? directory.value : undefined, cursors.ok ? cursors.value : []);
  const [mirroredKeys, visits] = await Promise.all([
    mirrorKeys(run),
    fanOut(targets, limits.fanOut, (target) => visit(run, target)),
    pokeShards(run, shards),
  ]);
  const marked = await markCells(database, visits);
  const pruned = await pruneHistory(database, startedAtMs - limits.historyS * 1_000);

  const failed = [begun, directory, mirrored, cursors, mirroredKeys, marked, pruned].find(
    (result) => !result.ok,
  );
  const finishedAtMs = clock.now();
  const report: CronReport = {
    startedAtMs,
    finishedAtMs,
    durationMs: finishedAtMs - startedAtMs,
    cellsPulled: visits.filter(({ completeAtMs, error }) => completeAtMs !== null && error === null).length,
    cellsFailed: visits.filter(({ error }) => error !== null).length,
    cellsBehind: visits.filter(({ isBehind }) => isBehind).map(({ cell }) => cell),
    leasesUpserted: visits.reduce((sum, { rows }) => sum + rows, 0),
    leasesPruned: pruned.ok ? pruned.value : 0,
    error: failed === undefined ? null : causeOf(failed),
  };
  await recordEnd(database, runId, scheduledAtMs, report);
  log("cron_run", {
    duration_ms: report.durationMs,
    cells_pulled: report.cellsPulled,
    cells_failed: report.cellsFailed,
    cells_behind: report.cellsBehind.length,
    leases_upserted: report.leasesUpserted,
    leases_pruned: report.leasesPruned,
    ...(report.error === null ? {} : { error: report.error }),
  });
  return report;
}

async function readDirectory({ envelope, objects, runtime }: CronRun): Promise<Result<Cell[]>> {
  const answer = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
    objects.directory().snapshot(envelope),
  );
  return answer.kind === "ok"
    ? ok(answer.value.cells)
    : refused("UNAVAILABLE", `the directory cannot be reached: ${causeOf(answer)}`);
}

/**
 * The cells to visit, the least recently pulled first, so that cells that this run doesn't reach come first
 * in the next.
 */
function targetsOf(registered: readonly Cell[] | undefined, cursors: readonly CellCursor[]): CronTarget[] {
  const cursorByCell = new Map(cursors.map((row) => [row.cell, row]));
  const lastPulledAtMs = ({ cell }: CronTarget): number => cursorByCell.get(cell)?.lastPulledAtMs ?? 0;
  return (registered ?? cursors.map(({ cell }) => ({ cell, locationHint: null })))
    .map(({ cell, locationHint }) => {
      const cursor = cursorByCell.get(cell);
      return {
        cell,
        locationHint,
        position: cursor?.position ?? null,
        seen: cursor?.seen ?? null,
        isLost: (cursor?.lostAtMs ?? null) !== null,
      };
    })
    .toSorted((a, b) => lastPulledAtMs(a) - lastPulledAtMs(b));
}

/**
 * Wakes the shards. A shard that lost its alarm would otherwise keep the holds of a begin that ended until
 * another begin meets them (M3).
 */
async function pokeShards({ envelope, limits, objects, runtime }: CronRun, shards: number): Promise<void> {
  await fanOut([...Array(shards).keys()], limits.fanOut, async (shard) => {
    const poked = await ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.shard(shard).ping(envelope));
    if (poked.kind !== "ok") runtime.log("shard_failed", { shard, error: causeOf(poked) });
  });
}

async function visit(run: CronRun, target: CronTarget): Promise<Visit> {
  const { cell, locationHint } = target;
  const pulled = await pull(run, target);
  // The ledger is woken even if the pull failed. It may have lost its alarm (M3), and outcomes that are 7
  // days old are pruned without D1 (S1).
  const poked = await ask(run.runtime.clock, CALL_TIMEOUT_MS, async () =>
    run.objects.ledger(cell, locationHint).maintain({ ...run.envelope, pulledPosition: pulled.position }),
  );
  const error = pulled.error ?? (poked.kind === "ok" ? null : causeOf(poked));
  if (error !== null) run.runtime.log("cell_failed", { cell, error });
  return { ...pulled, cell, error };
}

async function pull(run: CronRun, target: CronTarget): Promise<PullResult> {
  const { position, isLost: isBehind } = target;
  const failed = { rows: 0, completeAtMs: null, isBehind };
  if (position === null) return { ...failed, position: 0, error: "the projection in D1 cannot be reached" };
  try {
    return await pullLedger(run, { ...target, position });
  } catch (error) {
    // A bug, or a row of another version, affects only this cell.
    return { ...failed, position, error: causeOf({ cause: String(error) }) };
  }
}

/** Stores how fresh each cell's copy is, unless D1 was restored from a backup since the cell was read. */
async function markCells(database: Database, visits: readonly Visit[]): Promise<Result<null>> {
  const rows = visits.map(({ cell, position, completeAtMs, error }) => ({
    json: JSON.stringify({
      cell_id: cell,
      position,
      at_ms: completeAtMs,
      error: error ?? (completeAtMs === null ? INCOMPLETE : null),
    }),
  }));
  for (const part of inStatements(rows)) {
    const marked = await database.run("mark cells", (orm) => orm.run(updateMarks(part)));
    if (!marked.ok) return marked;
  }
  return ok(null);
}

const INCOMPLETE = "one run could not pull all changes; the next runs continue";

const updateMarks = (rows: readonly JsonRow[]) => sql`
  UPDATE cells SET
    last_pulled_at_ms =
      coalesce(max(coalesce(cells.last_pulled_at_ms, 0), mark.at_ms), cells.last_pulled_at_ms),
    last_error = mark.error
  FROM (
    SELECT value ->> 'cell_id' AS cell_id, value ->> 'position' AS position,
           value ->> 'at_ms' AS at_ms, value ->> 'error' AS error
    FROM json_each(${jsonArray(rows)})
  ) AS mark
  WHERE cells.cell_id = mark.cell_id AND cells.pulled_position >= mark.position`;

function recordEnd(
  database: Database,
  runId: string,
  scheduledAtMs: number,
  report: CronReport,
): Promise<Result<unknown>> {
  const { startedAtMs, finishedAtMs, cellsPulled, cellsFailed, leasesUpserted, leasesPruned, error } = report;
  const end = { finishedAtMs, cellsPulled, cellsFailed, leasesUpserted, leasesPruned, error };
  return database.run("end run", (orm) =>
    orm
      .insert(cronRuns)
      .values({ startedAtMs, runId, scheduledAtMs, ...end })
      .onConflictDoUpdate({ target: [cronRuns.startedAtMs, cronRuns.runId], set: end }),
  );
}
