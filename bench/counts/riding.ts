import { seeded } from "../../test/support/seeded.ts";
import { CLAIMS_OF_ONE, CYCLES_PER_SECOND, HELD_MS } from "../cost/gitlab.ts";
import type { CountedCoordinator, Lease } from "./counted-coordinator.ts";
import { averageOf, type WorkCounts } from "./work-counts.ts";

export const RIDING = "riding decisions, begin and commit";
/** Another seed, or more cycles, change a month by some hundredths. */
const CYCLES = 600;
/** The ledger waits for begins only once it has seen that they come often. */
const FIRST_CYCLES = 20;
/** No decision waits longer for a begin. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Counts the cycles of one cell at GitLab.com's rate, where decisions ride with the next begins (N1). They
 * begin at random moments, with random names. The clock of the objects is stopped, so the counts are the same
 * on every machine.
 */
export async function countRiding(coordinator: CountedCoordinator): Promise<WorkCounts> {
  const random = seeded(1);
  const shardsTouched: number[] = [];
  const begin = async (): Promise<Lease> => {
    const names = coordinator.names.anywhere(CLAIMS_OF_ONE);
    shardsTouched.push(coordinator.names.touchedBy(names));
    return coordinator.begin("1", CLAIMS_OF_ONE, 0, names);
  };
  await coordinator.stopClock();
  // The gap to the begins before depends on the machine, unless it is long.
  await coordinator.pass(LONGEST_WAIT_MS);
  await runCycles(coordinator, FIRST_CYCLES, random, begin);
  await coordinator.client.take();
  shardsTouched.length = 0;
  await runCycles(coordinator, CYCLES, random, begin);
  const mean = shardsTouched.reduce((sum, each) => sum + each, 0) / CYCLES;
  const work = coordinator.work(RIDING, CLAIMS_OF_ONE, null, mean);
  return averageOf(work, CYCLES, await coordinator.client.take());
}

async function runCycles(
  coordinator: CountedCoordinator,
  cycles: number,
  random: () => number,
  begin: () => Promise<Lease>,
): Promise<void> {
  const open: { lease: Lease; leftMs: number }[] = [];
  const pass = async (ms: number): Promise<void> => {
    await coordinator.pass(ms);
    for (const each of open) each.leftMs -= ms;
  };
  const commitWithin = async (ms: number): Promise<void> => {
    let leftMs = ms;
    for (let next = open[0]; next !== undefined && next.leftMs <= leftMs; next = open[0]) {
      leftMs -= next.leftMs;
      await pass(next.leftMs);
      await coordinator.decide(next.lease, "commit");
      open.shift();
    }
    await pass(leftMs);
  };
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    await commitWithin(Math.round((-Math.log(1 - random()) * 1_000) / CYCLES_PER_SECOND));
    open.push({ lease: await begin(), leftMs: HELD_MS });
  }
  await commitWithin(HELD_MS + LONGEST_WAIT_MS);
}
