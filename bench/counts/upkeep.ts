import type { CountedCoordinator } from "./counted-coordinator.ts";
import { averageOf, difference, sum, type WorkCounts } from "./work-counts.ts";
import type { RawCounts } from "./raw-counts.ts";

/** What one page of the cron holds at least twice. */
const LEASES = 100;
/** A cell that nothing else uses. */
const CELL = "4";

/** What nobody waits for: the alarms after decisions, and the runs of the cron. */
export async function countUpkeep(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts[]> {
  const alone = await lifeAlone(coordinator, calls);
  const cleaned = await cleanUp(coordinator);
  await clearBacklog(coordinator);
  const idle = await coordinator.count(
    coordinator.work("cron, nothing new", 0, null, coordinator.shards),
    calls,
    () => coordinator.cron(),
  );
  return [
    alone,
    cleaned,
    idle,
    await perLease(coordinator, "pulls and forgets, per lease decided before", decidedBefore),
    await perLease(coordinator, "pulls and forgets, per lease pulled outstanding", pulledOutstanding),
  ];
}

/** A lease that comes when nothing else does pays for all of its alarms. */
function lifeAlone(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts> {
  return coordinator.count(coordinator.work("begin, commit and alarms, all alone", 1), calls, async () => {
    await coordinator.decide(await coordinator.begin(CELL, 1), "commit");
    await coordinator.alarms();
  });
}

async function cleanUp(coordinator: CountedCoordinator): Promise<WorkCounts> {
  await coordinator.alarms();
  const leases = await coordinator.beginMany(CELL, LEASES);
  // One after another, so that each but the last is marked by the next: the rest is for the alarm.
  for (const lease of leases) await coordinator.decide(lease, "commit");
  await coordinator.client.take();
  await coordinator.alarms();
  return averageOf(coordinator.work("clean-up, per lease", 1), LEASES, await coordinator.client.take());
}

/** Whatever was there before is pulled, and forgotten. */
async function clearBacklog(coordinator: CountedCoordinator): Promise<void> {
  await coordinator.cron();
  await coordinator.advanceClock();
  await coordinator.cron();
}

type MeasureLeases = (coordinator: CountedCoordinator, leases: number) => Promise<RawCounts>;

/** What twice as many cost more: so what a run costs by itself is in no lease's count. */
async function perLease(
  coordinator: CountedCoordinator,
  work: string,
  measure: MeasureLeases,
): Promise<WorkCounts> {
  await clearBacklog(coordinator);
  const once = await measure(coordinator, LEASES);
  const twice = await measure(coordinator, 2 * LEASES);
  return averageOf(coordinator.work(work, 1), LEASES, difference(twice, once));
}

const decidedBefore: MeasureLeases = async (coordinator, leases) => {
  await coordinator.commitMany(await coordinator.beginMany(CELL, leases));
  await coordinator.alarms();
  await coordinator.client.take();
  await coordinator.cron();
  await coordinator.advanceClock();
  await coordinator.cron();
  return coordinator.client.take();
};

const pulledOutstanding: MeasureLeases = async (coordinator, leases) => {
  const begun = await coordinator.beginMany(CELL, leases);
  await coordinator.client.take();
  await coordinator.cron();
  const pulled = await coordinator.client.take();
  await coordinator.commitMany(begun);
  await coordinator.alarms();
  await coordinator.client.take();
  await coordinator.cron();
  await coordinator.advanceClock();
  await coordinator.cron();
  return sum(pulled, await coordinator.client.take());
};
