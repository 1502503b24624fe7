import { thaw } from "./activity.ts";
import { checkAlive, checkHistories, checkRest, checkWithoutCron, lookAtAll } from "./rest.ts";
import { checkDigests, checkEpochs, checkSlots } from "./rest-calls.ts";
import { checkVerified, verifyAll } from "./rest-verification.ts";
import { Violation } from "./violation.ts";
import { weatherOf, type Weather } from "./weather.ts";
import { World } from "./world.ts";

export interface RunOptions {
  seed: number;
  steps: number;
  /** Actions to leave out, by index; for shrinking. */
  skipped?: { has: (index: number) => boolean };
  weather?: Weather;
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

/** Events that a whole world may need for one long pause when nobody does anything. */
const REST_STEPS = 20_000;

/** How long alarms may take: the latest message, a clock that was set back by twice its largest error, and the longest backoff. */
const WITHOUT_CRON_MS = 600_000;

/** One run: a storm of at least `steps` events, then a calm in which everything must come to rest. */
export async function run({
  seed,
  steps,
  skipped = new Set(),
  weather = weatherOf(seed),
}: RunOptions): Promise<RunResult> {
  const world = new World(seed, weather, skipped);
  let violation: RunResult["violation"];
  const onRejection = (error: unknown): void => world.fail(error);
  process.on("unhandledRejection", onRejection);
  // A verification measures by it for how long it has had its slot.
  const now = performance.now.bind(performance);
  performance.now = () => world.scheduler.nowMs;
  try {
    await world.start();
    world.act();
    world.tick();
    const last = world.scheduler.steps + steps;
    while (world.scheduler.steps < last && (await world.step()));
    await quiesce(world);
  } catch (error) {
    violation = violationOf(error);
  } finally {
    process.off("unhandledRejection", onRejection);
    performance.now = now;
  }
  const seen: Record<string, number> = {};
  for (const [kind, count] of world.faults.counts) seen[`fault ${kind}`] = count;
  for (const [what, count] of world.judge.seen) seen[what] = count;
  // An alarm that the platform had lost, and that was set again.
  if (world.faults.counts.has("alarm_restored")) seen["M3"] = 1;
  return { seed, steps: world.scheduler.steps, actions: world.actions, violation, seen, log: world.log };
}

/** A crash of the code under test is a finding like any other. */
function violationOf(error: unknown): { rule: string; message: string } {
  if (error instanceof Violation) return { rule: error.rule, message: error.message };
  return {
    rule: "CRASH",
    message: `unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  };
}

/** Faults end and time passes, with cron and reconciliation as ever: nothing may be left over. */
async function quiesce(world: World): Promise<void> {
  world.stopActing();
  world.faults.calm = true;
  world.faults.partitions = [];
  for (const cell of world.cells) cell.restart();
  await world.pass(WITHOUT_CRON_MS, REST_STEPS);
  checkWithoutCron(world);
  await world.settle(world.cron());
  for (const cell of world.cells) await world.settle(thaw(world, cell, world.operator));
  for (let round = 0; round < 4; round += 1) {
    // What a verification has left behind the last round cleans up.
    if (round === 3) await verifyAll(world);
    await world.pass(750_000, REST_STEPS);
    await world.settle(world.cron());
    for (const cell of world.cells) await world.settle(cell.reconcile({ full: true, orphanMs: 60_000 }));
    await world.pass(70_000, REST_STEPS);
    await world.settle(world.cron());
  }
  await checkVerified(world);
  await world.settle(lookAtAll(world));
  checkRest(world);
  for (const cell of world.cells) await world.settle(checkAlive(world, cell));
  checkHistories(world);
  await world.settle(checkDigests(world));
  for (const cell of world.cells) await world.settle(checkEpochs(world, cell));
  await world.settle(checkSlots(world));
}
