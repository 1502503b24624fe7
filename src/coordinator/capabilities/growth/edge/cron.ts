import { fanOut } from "../../../kernel/fan-out.ts";
import {
  hasCopied,
  type Growth,
  type GrowthCopy,
  type GrowthProgress,
  type GrowthStep,
} from "../messages.ts";
import type { Envelope } from "../../../kernel/messages.ts";
import { operationRunning } from "../../operations/messages.ts";
import { inTheWayOf } from "../../operations/operations.ts";
import { shardsOf } from "../../../kernel/placement.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import type { Objects } from "../../../objects/objects.ts";
import type { WallClock } from "../../../runtime.ts";
import { readGrowthCopy, readSeen } from "../../../d1/directory-copies.ts";
import { causeOf } from "../../../d1/database.ts";
import { askAgain, type GrowthDriver } from "./growth-driver.ts";
import { mirrorGrowth, noteAborted } from "../../projection/edge/mirror.ts";
import { readSightings, type Sightings } from "./shard-sightings.ts";

/** How far the shards of before are, by their numbers. A shard that could not be asked has no progress. */
export interface GrowthState {
  growth: Growth;
  shards: { shard: number; progress: GrowthProgress | null }[];
}

/**
 * How many rows of a shard one message reads at most. Begins on the shard wait for it, so messages are small
 * (bench/more-shards).
 */
const STEP_ROWS = 50;

/** The same after the cut, while nobody serves the names that are sent. */
const PUSHED_ROWS = 250;

/** The messages to one shard in one step. */
const STEP_MESSAGES = 20;

/** Reads the growth that runs. Null: none. Without D1, the directory can't notice that it went back (G2). */
export async function readGrowth(driver: GrowthDriver): Promise<Result<Growth | null>> {
  const seen = await readSeen(driver.database);
  const growthCopiedAt = seen.ok ? seen.value.growthPosition : 0;
  return askAgain(driver, ({ envelope, objects }) =>
    objects.directory().growth({ ...envelope, growthCopiedAt }),
  );
}

export const askProgress = (
  objects: Objects,
  envelope: Envelope,
  shard: number,
): Promise<Result<GrowthProgress>> => objects.shard(shard).growthProgress(envelope);

/** Asks the shards of before how far they are. */
export const readProgress = (driver: GrowthDriver, growth: Growth): Promise<GrowthState> =>
  askSources(driver, growth, ({ envelope, objects }, shard) => askProgress(objects, envelope, shard));

/**
 * Carries out a bounded part of a growth, up to a moment: copies before the cut, and hands over and deletes
 * after it. A cut that was ordered is completed, but none is ordered. Returns what is left, or null if the
 * growth has ended. Steps at the same time, and steps that are repeated, do no harm (G4).
 */
export async function stepGrowth(
  driver: GrowthDriver,
  growth: Growth,
  untilMs: number,
  rows = STEP_ROWS,
): Promise<Result<GrowthState | null>> {
  const cut = growth.phase === "cutting" ? await repeatCut(driver, growth) : ok(growth);
  if (!cut.ok) return cut;
  // Names that are not handed over are unavailable, so that comes first, and everywhere at once.
  if (cut.value.phase === "cut") {
    const pushed = await askSources(driver, cut.value, (now, shard) =>
      stepShard(now, cut.value, shard, { untilMs, rows: PUSHED_ROWS, onlyPushes: true }),
    );
    if (pushed.shards.some(({ progress }) => progress === null || progress.state === "pushing"))
      return ok(pushed);
  }
  const state = await stepInTurn(driver, cut.value, untilMs, rows);
  if (!areAll(state, "done")) return ok(state);
  const left = await conclude(driver, cut.value);
  if (left !== null) return ok(left);
  const finished = await askAgain(driver, ({ envelope, objects }) =>
    objects.directory().finishGrowth({ ...envelope, id: growth.id }),
  );
  return finished.ok ? ok(null) : finished;
}

/**
 * Copies and deletions have time, so one shard works after the other, and begins are not slowed down
 * everywhere at once. When the time is over, the others only say how far they are. So shards that hang cost
 * the time of two answers at most.
 */
async function stepInTurn(
  driver: GrowthDriver,
  growth: Growth,
  untilMs: number,
  rows: number,
): Promise<GrowthState> {
  const isOver = (): boolean => driver.clock.now() >= untilMs;
  const done: GrowthState["shards"] = [];
  for (let shard = 0; shard < growth.from && !isOver(); shard += 1)
    done.push(await askSource(driver, shard, (now) => stepShard(now, growth, shard, { untilMs, rows })));
  const others = await askSources(
    driver,
    growth,
    ({ envelope, objects }, shard) => askProgress(objects, envelope, shard),
    done.length,
  );
  return { growth, shards: [...done, ...others.shards] };
}

/** How long a step waits for ledgers. The growth goes on without an end while one of them doesn't answer. */
const CONCLUDE_MS = 10_000;

/**
 * Tells the shards of before what the ledgers have seen of them. If every ledger has answered, and no shard
 * has gone back, they forget the growth (G7). Returns null, or what is left.
 */
async function conclude(driver: GrowthDriver, growth: Growth): Promise<GrowthState | null> {
  const sightings = await readSightings(driver, driver.clock.now() + CONCLUDE_MS);
  const concluded = { ...growth, phase: "concluded" } as const;
  const state = await askSources(driver, growth, ({ envelope, objects }, shard) =>
    objects.shard(shard).growStep({
      ...envelope,
      growth: sightings.areComplete ? concluded : growth,
      rows: STEP_ROWS,
      ...seenOf(sightings, shard),
    }),
  );
  return sightings.areComplete && areAll(state, "done") ? null : state;
}

const seenOf = ({ byShard }: Sightings, shard: number): Pick<GrowthStep, "sightings"> => {
  const sightings = byShard.get(shard);
  return sightings === undefined ? {} : { sightings: [...sightings] };
};

/** Puts the new placement in force after a cut was ordered: first D1 gets a copy of the growth (G2). */
export async function completeCut(driver: GrowthDriver, growth: Growth): Promise<Result<Growth>> {
  const copied = await mirrorGrowth(driver.database, growth);
  if (!copied.ok) return copied;
  return askAgain(driver, ({ envelope, objects }) =>
    objects.directory().confirmCut({ ...envelope, id: growth.id, growthCopiedAt: copied.value }),
  );
}

/** If D1 could not be reached, the order may be old, so what has changed since then is sent first. */
async function repeatCut(driver: GrowthDriver, growth: Growth): Promise<Result<Growth>> {
  await sendChanges(driver, growth);
  return completeCut(driver, growth);
}

/** Whether the cut would make few names unavailable, and those for a moment only. */
export const isReadyToCut = ({ growth, shards }: GrowthState): boolean =>
  growth.phase === "copying" &&
  shards.every(({ progress }) => progress !== null && hasCopied(growth, progress));

/** How long the names are sent that have changed before a cut. Others change meanwhile. */
const PREPARE_MS = 3_000;

/**
 * Tells the shards what the ledgers have seen of them, so that one that went back notices it before the cut,
 * and sends what has changed, so that the cut makes hardly any name unavailable. A ledger that does not
 * answer prevents no cut.
 */
async function sendChanges(driver: GrowthDriver, growth: Growth): Promise<GrowthState> {
  const sightings = await readSightings(driver, driver.clock.now() + PREPARE_MS);
  const untilMs = driver.clock.now() + PREPARE_MS;
  return askSources(driver, growth, (now, shard) =>
    stepShard(now, growth, shard, { untilMs, rows: STEP_ROWS, ...seenOf(sightings, shard) }),
  );
}

/** Tells and sends what a cut needs. Returns what the shards have said, or null if it is not possible yet. */
export async function prepareCut(driver: GrowthDriver, growth: Growth): Promise<GrowthProgress[] | null> {
  if (!isReadyToCut(await readProgress(driver, growth))) return null;
  const state = await sendChanges(driver, growth);
  return isReadyToCut(state) ? state.shards.flatMap(({ progress }) => progress ?? []) : null;
}

/** Whether every shard of before has said that it is in this state of this growth. */
const areAll = ({ growth, shards }: GrowthState, state: GrowthProgress["state"]): boolean =>
  shards.every(({ progress }) => progress?.growth === growth.id && progress.state === state);

/**
 * Tells all shards that a growth was aborted, so that they drop what it has left there, and notes in D1 when
 * all have dropped it. A directory that has forgotten the abort learns of it from D1, so that comes first
 * (G2). Fails if a shard can't be reached.
 */
export async function dropCopies(driver: GrowthDriver, growth: GrowthCopy): Promise<Result<unknown>> {
  if (growth.isAborted !== true) {
    const noted = await noteAborted(driver.database, growth, { isDropped: false });
    if (!noted.ok) return noted;
  }
  const { id, position } = growth;
  const aborted = { id, position, phase: "aborted" } as const;
  const told = await fanOut([...Array(growth.to).keys()], driver.limits.fanOut, (shard) =>
    askAgain(driver, ({ envelope, objects }) =>
      objects.shard(shard).growStep({ ...envelope, growth: aborted, rows: STEP_ROWS }),
    ),
  );
  const failed = told.find((answer) => !answer.ok);
  if (failed !== undefined) return failed;
  const isDropped = told.every((answer) => answer.ok && answer.value.state !== "cleaning");
  return isDropped ? noteAborted(driver.database, growth, { isDropped }) : ok(null);
}

/**
 * Must be called before a growth is started: D1 has one growth, so it would forget an aborted one that some
 * shards were not told of. Fails if they can't be reached.
 */
export async function dropAborted(driver: GrowthDriver): Promise<Result<unknown>> {
  const last = await readGrowthCopy(driver.database);
  if (!last.ok || last.value?.phase !== "copying" || last.value.isDropped === true) return last;
  const running = await readGrowth(driver);
  return running.ok && running.value === null ? dropCopies(driver, last.value) : running;
}

/**
 * Must be called before a growth is started, because it would wait for a shard that can't answer. Refuses and
 * names what is in the way, or these shards. A growth that runs already is not refused.
 */
export async function checkSources(driver: GrowthDriver): Promise<Result<unknown>> {
  const read = await askAgain(driver, ({ envelope, objects }) => objects.directory().operations(envelope));
  if (!read.ok || read.value.operations.some(({ kind }) => kind === "growth")) return read;
  const other = inTheWayOf({ kind: "growth", id: "" }, read.value.operations);
  if (other !== undefined) return operationRunning(other);
  // The directory has accepted this placement.
  const shards = [...Array(shardsOf(driver.envelope.placement)).keys()];
  const asked = await fanOut(shards, driver.limits.fanOut, async (shard) => ({
    shard,
    answer: await askAgain(driver, ({ envelope, objects }) => askProgress(objects, envelope, shard)),
  }));
  const failed = asked.flatMap(({ shard, answer }) =>
    !answer.ok
      ? [`shard ${shard} (${causeOf(answer)})`]
      : answer.value.waitsFor === "reconciliation"
        ? [`shard ${shard} (it is being reconciled)`]
        : [],
  );
  if (failed.length === 0) return ok(null);
  return refused(
    "FAILED_PRECONDITION",
    "nothing was started, because shards can't copy their names now: " +
      failed.slice(0, MOST_NAMED).join(", ") +
      (failed.length > MOST_NAMED ? `, and ${failed.length - MOST_NAMED} more` : ""),
    { reason: "GROWTH_SHARD_UNAVAILABLE" },
  );
}

/** The shards that a refusal names. */
const MOST_NAMED = 5;

interface StepOptions extends Pick<GrowthStep, "sightings"> {
  untilMs: number;
  rows: number;
  onlyPushes?: boolean;
}

async function stepShard(
  { envelope, objects, clock }: GrowthDriver,
  growth: Growth,
  shard: number,
  { untilMs, rows, onlyPushes = false, ...seen }: StepOptions,
): Promise<Result<GrowthProgress>> {
  for (let messages = 1; ; messages += 1) {
    const startedMs = clock.now();
    const stepped = await objects.shard(shard).growStep({ ...envelope, growth, rows, ...seen });
    if (!stepped.ok || messages === STEP_MESSAGES || clock.now() >= untilMs) return stepped;
    const { state, waiting } = stepped.value;
    if (state === "done" || (state === "copied" && waiting === 0)) return stepped;
    if (onlyPushes && state !== "pushing") return stepped;
    // Begins get three times as much time as copies and deletions (bench/more-shards). But names that are not
    // handed over wait.
    if (state !== "pushing") await pause(clock, 3 * (clock.now() - startedMs));
  }
}

/** Asks the shards of before at the same time, from one number on. */
async function askSources(
  driver: GrowthDriver,
  growth: Growth,
  call: (driver: GrowthDriver, shard: number) => Promise<Result<GrowthProgress>>,
  first = 0,
): Promise<GrowthState> {
  const numbers = [...Array(growth.from).keys()].slice(first);
  const shards = await fanOut(numbers, driver.limits.fanOut, (shard) =>
    askSource(driver, shard, (now) => call(now, shard)),
  );
  return { growth, shards };
}

async function askSource(
  driver: GrowthDriver,
  shard: number,
  call: (driver: GrowthDriver) => Promise<Result<GrowthProgress>>,
): Promise<GrowthState["shards"][number]> {
  const answer = await askAgain(driver, call);
  return { shard, progress: answer.ok ? answer.value : null };
}

const pause = (clock: WallClock, ms: number): Promise<void> =>
  new Promise((resume) => clock.after(Math.max(0, ms), resume));

/** A run that also makes steps of a growth, and settles operations. Its envelope follows the placement. */
export type CronDriver = CronRun & GrowthDriver;

/** How long a run makes steps of a growth, if it has the time. */
const GROWTH_MS = 15_000;

/**
 * Continues a growth, so that it ends although nobody calls its steps. It never orders the cut. An aborted
 * growth may have left copies, and shards that still note changes for it, if they could not be reached.
 */
export async function continueGrowth(
  driver: CronDriver,
  { growth, growthCopiedAt }: { growth: Growth | null; growthCopiedAt: number },
): Promise<void> {
  const { clock, deadlineMs } = driver;
  const { log } = driver.runtime;
  if (growth === null) {
    if (growthCopiedAt === 0) return;
    const last = await readGrowthCopy(driver.database);
    if (!last.ok || last.value?.phase !== "copying" || last.value.isDropped === true) return;
    // Another one may have started since the directory was asked.
    if (last.value.position > growthCopiedAt) return;
    const dropped = await dropCopies(driver, last.value);
    if (!dropped.ok) log("growth_failed", { error: causeOf(dropped) });
    return;
  }
  const stepped = await stepGrowth(driver, growth, Math.min(deadlineMs, clock.now() + GROWTH_MS));
  if (!stepped.ok) log("growth_failed", { error: causeOf(stepped) });
}
