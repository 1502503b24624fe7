import { sql } from "drizzle-orm";
import { fanOut } from "../core/ask.ts";
import type { Cell } from "../core/directory/directory.ts";
import { MESSAGE_VERSION } from "../core/messages.ts";
import { refused, type Result } from "../core/refusal.ts";
import { configOf, type Env } from "../env.ts";
import { logEvent } from "../log.ts";
import { call, objectsOf } from "../objects/peers.ts";
import { Database } from "./database.ts";
import { causeOf } from "./failure.ts";
import { pruneHistory } from "./history.ts";
import { inStatements, jsonArray, type JsonRow } from "./json-rows.ts";
import { mirrorCells, mirrorKeys } from "./mirror.ts";
import { pullLedger, type Pulled, type Source } from "./pull.ts";
import { CALL_MS, type Run } from "./run.ts";
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
interface Target extends Omit<Source, "position"> {
  position: number | null;
}

interface Visit extends Pulled {
  cell: string;
}

/**
 * Copies the directory and all ledgers into D1, and pokes every ledger. Runs may be missed, late, doubled or overlap; each goes on from the
 * cursors that D1 holds. D1 being down must not keep a ledger from being woken, and no cell's failure may stop the others.
 */
export async function runCron(env: Env, scheduledAtMs: number): Promise<CronReport> {
  const startedAtMs = Date.now();
  const { limits, placement } = configOf(env);
  const database = new Database(env);
  const run: Run = {
    envelope: { version: MESSAGE_VERSION, placement },
    limits,
    objects: objectsOf(env, configOf(env)),
    database,
    deadlineMs: startedAtMs + RUN_MS,
    pagesLeft: RUN_PAGES,
  };
  const runId = crypto.randomUUID();
  const begun = await database.run("begin run", (orm) => orm.insert(cronRuns).values({ startedAtMs, runId, scheduledAtMs }).onConflictDoNothing());
  const directory = await readDirectory(run);
  const mirrored = directory.ok ? await mirrorCells(database, directory.value) : directory;
  const known = await database.run("read cells", (orm) =>
    orm.select({ cell: cells.cellId, position: cells.pulledPosition, lastPulledAtMs: cells.lastPulledAtMs }).from(cells),
  );
  const targets = targetsOf(directory.ok ? directory.value : undefined, known.ok ? known.value : []);
  const [mirroredKeys, visits] = await Promise.all([mirrorKeys(run), fanOut(targets, limits.fanOut, (target) => visit(run, target))]);
  const marked = await markCells(database, visits);
  const pruned = await pruneHistory(database, startedAtMs - limits.historyS * 1_000);

  const failed = [begun, directory, mirrored, known, mirroredKeys, marked, pruned].find((result) => !result.ok);
  const finishedAtMs = Date.now();
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
  const { error, startedAtMs: _, finishedAtMs: __, ...figures } = report;
  logEvent("cron_run", { ...figures, ...(error === null ? {} : { error }) });
  return report;
}
