import type { CountedCoordinator } from "./counted-coordinator.ts";
import { averageOf, difference, sum, type WorkCounts } from "./work-counts.ts";
import type { RawCounts } from "./raw-counts.ts";

const CLEANED_LEASES = 100;
/** One page of the cron has room for at least twice this number of leases. */
const PULLED_LEASES = 25;
/** No other measurement uses this cell. */
const CELL = "4";

/** Counts the background work: the alarms after decisions, and the cron. */
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
    await beginsOverOld(coordinator),
  ];
}

export const OVER_OLD = "begin, instead of an old lease";

/** Counts begins that take the rows of leases whose outcomes are old enough to be forgotten. */
async function beginsOverOld(coordinator: CountedCoordinator): Promise<WorkCounts> {
  await clearBacklog(coordinator);
  await coordinator.commitMany(await coordinator.beginMany(CELL, PULLED_LEASES));
  await coordinator.alarms();
  await coordinator.advanceClock();
  await coordinator.client.take();
  return coordinator.count(coordinator.work(OVER_OLD, 1), PULLED_LEASES, () => coordinator.begin(CELL, 1));
}

/** Counts a lease without other load, which pays for all of its alarms alone. */
function lifeAlone(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts> {
  return coordinator.count(coordinator.work("begin, commit and alarms, all alone", 1), calls, async () => {
    await coordinator.decide(await coordinator.begin(CELL, 1), "commit");
    await coordinator.client.quiet();
    await coordinator.alarms();
  });
}

async function cleanUp(coordinator: CountedCoordinator): Promise<WorkCounts> {
  await coordinator.alarms();
  const leases = await coordinator.beginMany(CELL, CLEANED_LEASES);
  for (const lease of leases) await coordinator.decide(lease, "commit");
  await coordinator.client.take();
  await coordinator.alarms();
  return averageOf(
    coordinator.work("clean-up, per lease", 1),
    CLEANED_LEASES,
    await coordinator.client.take(),
  );
}

/** Lets the cron pull all earlier leases, and the ledger delete them. */
async function clearBacklog(coordinator: CountedCoordinator): Promise<void> {
  await coordinator.cron();
  await coordinator.advanceClock();
  await coordinator.cron();
}

type MeasureLeases = (coordinator: CountedCoordinator, leases: number) => Promise<RawCounts>;

/**
 * Counts the difference between twice as many leases and as many, so that the fixed cost of a cron run is
 * excluded.
 */
async function perLease(
  coordinator: CountedCoordinator,
  work: string,
  measure: MeasureLeases,
): Promise<WorkCounts> {
  await clearBacklog(coordinator);
  const once = await measure(coordinator, PULLED_LEASES);
  const twice = await measure(coordinator, 2 * PULLED_LEASES);
  return averageOf(coordinator.work(work, 1), PULLED_LEASES, difference(twice, once));
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
