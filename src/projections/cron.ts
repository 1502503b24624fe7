import { sql } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import { fanOut } from "../core/fan-out.ts";
import type { Cell } from "../core/directory/directory.ts";
import { MESSAGE_VERSION } from "../core/messages.ts";
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
  /** Cells whose ledger was copied to its end, and woken. */
  cellsPulled: number;
  cellsFailed: number;
  leasesUpserted: number;
  leasesPruned: number;
  /** The first thing that went wrong with the run as a whole; a cell's own failure is with the cell. */
  error: string | null;
}

/** When a run stops asking for pages: the next one starts after a minute. */
const RUN_MS = 45_000;
/** Pages of a run: two statements each, and D1 takes 1,000 per invocation. */
const RUN_PAGES = 400;

/** A cell as this run meets it. Without a cursor (D1 is down) its ledger is still woken, but nothing is pulled. */
interface CronTarget extends Omit<PullTarget, "position"> {
  position: number | null;
}

interface Visit extends PullResult {
  cell: string;
}

/** A cell as D1 knows it. */
interface CellCursor {
  cell: string;
  position: number;
  lastPulledAtMs: number | null;
}

/**
 * Copies the directory and all ledgers into D1, and pokes every ledger and shard. Runs may be missed, late, doubled or overlap; each goes on from the
 * cursors that D1 holds. D1 being down must not keep a ledger from being woken, and no cell's failure may stop the others.
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
      .select({ cell: cells.cellId, position: cells.pulledPosition, lastPulledAtMs: cells.lastPulledAtMs })
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
    leasesUpserted: visits.reduce((sum, { rows }) => sum + rows, 0),
    leasesPruned: pruned.ok ? pruned.value : 0,
    error: failed === undefined ? null : causeOf(failed),
  };
  await recordEnd(database, runId, scheduledAtMs, report);
  log("cron_run", {
    duration_ms: report.durationMs,
    cells_pulled: report.cellsPulled,
    cells_failed: report.cellsFailed,
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

/** Least recently pulled first, so that what one run does not get to comes first in the next. */
function targetsOf(registered: readonly Cell[] | undefined, cursors: readonly CellCursor[]): CronTarget[] {
  const cursorByCell = new Map(cursors.map((row) => [row.cell, row]));
  const lastPulledAtMs = ({ cell }: CronTarget): number => cursorByCell.get(cell)?.lastPulledAtMs ?? 0;
  return (registered ?? cursors.map(({ cell }) => ({ cell, locationHint: null })))
    .map(({ cell, locationHint }) => ({
      cell,
      locationHint,
      position: cursorByCell.get(cell)?.position ?? null,
    }))
    .toSorted((a, b) => lastPulledAtMs(a) - lastPulledAtMs(b));
}

/** A shard whose alarm got lost would keep the holds of a dead begin until somebody collides with them (rule M3). */
async function pokeShards({ envelope, limits, objects, runtime }: CronRun, shards: number): Promise<void> {
  await fanOut([...Array(shards).keys()], limits.fanOut, async (shard) => {
    const poked = await ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.shard(shard).ping(envelope));
    if (poked.kind !== "ok") runtime.log("shard_failed", { shard, error: causeOf(poked) });
  });
}

async function visit(run: CronRun, target: CronTarget): Promise<Visit> {
  const { cell, locationHint } = target;
  const pulled = await pull(run, target);
  // In any case: the ledger may have lost its alarm, and what is old enough goes without D1 as well.
  const poked = await ask(run.runtime.clock, CALL_TIMEOUT_MS, async () =>
    run.objects.ledger(cell, locationHint).maintain({ ...run.envelope, pulledPosition: pulled.position }),
  );
  const error = pulled.error ?? (poked.kind === "ok" ? null : causeOf(poked));
  if (error !== null) run.runtime.log("cell_failed", { cell, error });
  return { ...pulled, cell, error };
}

async function pull(run: CronRun, { cell, locationHint, position }: CronTarget): Promise<PullResult> {
  if (position === null)
    return { position: 0, rows: 0, completeAtMs: null, error: "the fleet record cannot be reached" };
  try {
    return await pullLedger(run, { cell, locationHint, position });
  } catch (error) {
    // A bug, or a row of another version: this cell's trouble only.
    return { position, rows: 0, completeAtMs: null, error: causeOf({ cause: String(error) }) };
  }
}

/** Says of each cell how fresh its copy is, unless D1 was set back since it was made. */
async function markCells(database: Database, visits: readonly Visit[]): Promise<Result<null>> {
  const rows = visits.map(({ cell, position, completeAtMs, error }) => ({
    json: JSON.stringify({
      cell_id: cell,
      position,
      at_ms: completeAtMs,
      error: error ?? (completeAtMs === null ? "one run could not pull all of it" : null),
    }),
  }));
  for (const part of inStatements(rows)) {
    const marked = await database.run("mark cells", (orm) => orm.run(updateMarks(part)));
    if (!marked.ok) return marked;
  }
  return ok(null);
}

const updateMarks = (rows: readonly JsonRow[]) => sql`
  UPDATE cells SET
    last_pulled_at_ms = coalesce(max(coalesce(cells.last_pulled_at_ms, 0), mark.at_ms), cells.last_pulled_at_ms),
    last_error = mark.error
  FROM (
    SELECT value ->> 'cell_id' AS cell_id, value ->> 'position' AS position, value ->> 'at_ms' AS at_ms, value ->> 'error' AS error
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
