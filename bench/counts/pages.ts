import type { CountedCoordinator } from "./counted-coordinator.ts";
import type { WorkCounts } from "./work-counts.ts";
import { rounds } from "./rounds.ts";

export const PAGE_ITEMS = 100;
const ITEMS = 150;
/** No other measurement uses this cell. */
const CELL = "3";

/** Counts pages of the lists of leases and records. */
export async function countPages(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts[]> {
  const leases = await coordinator.beginMany(CELL, ITEMS);
  const page = (path: string) => () =>
    coordinator.client.send(200, "GET", `/v1/cells/${CELL}/${path}`, coordinator.cellKey(CELL));
  const ofLeases = await coordinator.count(
    coordinator.work(`list of leases, ${PAGE_ITEMS} of ${ITEMS}`, 0, rounds.listLeases),
    calls,
    page(`leases?page_size=${PAGE_ITEMS}`),
  );
  await coordinator.commitMany(leases);
  const ofRecords = await coordinator.count(
    coordinator.work(`list of records, ${PAGE_ITEMS} of ${ITEMS}`, 0, rounds.listRecords, coordinator.shards),
    calls,
    page(`records?source_type=RAILS_TABLE_ROUTES&page_size=${PAGE_ITEMS}`),
  );
  return [ofLeases, ofRecords];
}
