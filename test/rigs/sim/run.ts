import { wallClock } from "../../../src/coordinator/runtime.ts";
import { RIDE_WAIT_MS } from "../../../src/coordinator/kernel/ledger/shard-link.ts";
import { thaw } from "./activity.ts";
import { checkConsumer } from "./change-consumer.ts";
import { checkAlive, checkHistories, checkRest, checkWithoutCron, lookAtAll } from "./final-checks.ts";
import { checkDigests, checkEpochs, checkSlots } from "./final-calls.ts";
import { endingOf, type Ending } from "./ending.ts";
import { directoryGoesBack } from "./directory-going-back.ts";
import { goBack } from "./going-back.ts";
import { checkPastClaims } from "./final-past-claims.ts";
import { checkVerified, verifyAll } from "./final-verification.ts";
import { plantings } from "./planted.ts";
import { Violation } from "./violation.ts";
import { drawSettings, type SimulationSettings } from "./simulation-settings.ts";
import { removeWhileGoingBack } from "./removal-going-back.ts";
import { sourcesGoBack } from "./source-going-back.ts";
import { removeCell } from "./removing.ts";
import { checkScrubs } from "./scrubbing.ts";
import { Simulation, StepsAreOver } from "./simulation.ts";
import { transfersGoBack } from "./transfers-going-back.ts";
import { endTransfers, settleTransfers } from "./transferring.ts";

export interface RunOptions {
  /** The planted bug, if any. */
  bug?: string | undefined;
  seed: number;
  steps: number;
  /** The run ends after so many events, with or without a violation. */
  mostSteps?: number | undefined;
  /** Actions to leave out, by index. Used for shrinking. */
  skipped?: { has: (index: number) => boolean };
  settings?: SimulationSettings;
}

export interface RunResult {
  seed: number;
  steps: number;
  actions: number;
  violation: { rule: string; message: string } | undefined;
  /** How often each fault, invariant, rule and activity occurred. */
  seen: Record<string, number>;
  log: readonly string[];
}

/** The most events that may occur in one long pause without activities. */
const REST_STEPS = 20_000;

/** A run with more events than this, and than its steps can cause, does not end. */
const ENDLESS_STEPS = 100_000;

/**
 * How long alarms may take: the latest message, a clock that was set back by twice its largest error, and the
 * longest backoff.
 */
const WITHOUT_CRON_MS = 600_000;

/**
 * Runs one seed: at least `steps` events with faults, then a phase without faults in which everything must be
 * cleaned up.
 */
export async function run({
  bug,
  seed,
  steps,
  mostSteps,
  skipped = new Set(),
  settings = drawSettings(seed),
}: RunOptions): Promise<RunResult> {
  for (const plant of plantings) plant(bug);
  const simulation = new Simulation(seed, settings, skipped);
  const endlessSteps = ENDLESS_STEPS + 50 * steps;
  simulation.mostSteps = Math.min(mostSteps ?? endlessSteps, endlessSteps);
  let violation: RunResult["violation"];
  const onRejection = (error: unknown): void => simulation.fail(error);
  process.on("unhandledRejection", onRejection);
  // A verification uses performance.now() to measure how long it has had its slot.
  const now = performance.now.bind(performance);
  performance.now = () => simulation.scheduler.nowMs;
  // The Worker's copies of the set of types wait with the clock of the runtime.
  const { after } = wallClock;
  wallClock.after = (delayMs, then) => simulation.scheduler.after(delayMs, undefined, then);
  try {
    await simulation.start();
    simulation.act();
    simulation.tick();
    simulation.keepHabits();
    const last = simulation.scheduler.steps + steps * settings.stepsFactor;
    while (simulation.scheduler.steps < last && (await simulation.step()));
    await quiesce(simulation, settings, endingOf(seed, settings));
  } catch (error) {
    if (!(error instanceof StepsAreOver) || simulation.mostSteps === endlessSteps)
      violation = violationOf(error);
  } finally {
    process.off("unhandledRejection", onRejection);
    performance.now = now;
    wallClock.after = after;
  }
  const seen: Record<string, number> = {};
  for (const [kind, count] of simulation.faults.counts) seen[`fault ${kind}`] = count;
  for (const [what, count] of simulation.judge.seen) seen[what] = count;
  // The platform lost an alarm, and it was set again.
  if (simulation.faults.counts.has("alarm_restored")) seen["M3"] = 1;
  return {
    seed,
    steps: simulation.scheduler.steps,
    actions: simulation.actions,
    violation,
    seen,
    log: simulation.log,
  };
}

/** An exception of the code under test counts as a finding. */
function violationOf(error: unknown): { rule: string; message: string } {
  if (error instanceof Violation) return { rule: error.rule, message: error.message };
  return {
    rule: "CRASH",
    message: `unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  };
}

/** Faults end and time passes, with cron and reconciliation as ever: nothing may be left over. */
async function quiesce(simulation: Simulation, settings: SimulationSettings, ending: Ending): Promise<void> {
  const { transfersMs } = settings;
  simulation.stopActing();
  simulation.faults.areOff = true;
  simulation.faults.partitions = [];
  for (const cell of simulation.cells) cell.restart();
  simulation.upgrader?.upgradeAll();
  await simulation.pass(WITHOUT_CRON_MS, REST_STEPS);
  checkWithoutCron(simulation);
  const { grower } = simulation;
  if (grower !== undefined && transfersMs !== undefined) await endTransfers(simulation);
  await grower?.finish(simulation.faults.stream("growth ends"));
  await simulation.runUntil(simulation.cron());
  for (const cell of simulation.cells) await simulation.runUntil(thaw(simulation, cell, simulation.operator));
  if (transfersMs !== undefined) await settleTransfers(simulation);
  for (let round = 0; round < 4; round += 1) {
    // Verifications run before the last round, so that the last round cleans up what they leave.
    if (round === 3) await verifyAll(simulation);
    await simulation.pass(750_000, REST_STEPS);
    await simulation.runUntil(simulation.cron());
    for (const cell of simulation.cells)
      await simulation.runUntil(cell.reconcile({ full: true, orphanMs: 60_000 }));
    await simulation.pass(70_000, REST_STEPS);
    await simulation.runUntil(simulation.cron());
  }
  await checkVerified(simulation);
  await simulation.runUntil(lookAtAll(simulation));
  checkRest(simulation);
  for (const cell of simulation.cells) await simulation.runUntil(checkAlive(simulation, cell));
  checkHistories(simulation);
  // The last decisions wait for begins to share their messages (N1).
  await simulation.pass(2 * RIDE_WAIT_MS, REST_STEPS);
  await simulation.runUntil(checkDigests(simulation));
  for (const cell of simulation.cells) await simulation.runUntil(checkEpochs(simulation, cell));
  await simulation.runUntil(checkSlots(simulation));
  await checkConsumer(simulation);
  await end(simulation, ending, settings);
}

async function end(
  simulation: Simulation,
  ending: Ending,
  { sourceGoesBack = 0 }: SimulationSettings,
): Promise<void> {
  switch (ending) {
    case "lost transfers":
      return transfersGoBack(simulation);
    case "scrubs":
      return checkScrubs(simulation);
    case "removal":
      return removeCell(simulation);
    case "removal that goes back":
      return removeWhileGoingBack(simulation);
    case "sources":
      return sourcesGoBack(simulation, sourceGoesBack);
    case "directory":
      await directoryGoesBack(simulation);
      break;
    case "parts":
      await goBack(simulation);
  }
  await checkPastClaims(simulation);
}
