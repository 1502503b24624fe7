import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { countCalls } from "./calls.ts";
import { CountedCoordinator } from "./counted-coordinator.ts";
import type { WorkCounts } from "./work-counts.ts";
import { countD1Only } from "./d1-only.ts";
import { countPages } from "./pages.ts";
import { countUpkeep } from "./upkeep.ts";

const CALLS = 20;
/** Several, so that a batch can touch more than one, and the least. */
const SHARDS = [4, 1];

/**
 * What each piece of work costs, in counts that no machine changes. The calls come one after another, so that
 * nothing is shared: under load they cost less. `folder`: an empty one, for the state.
 */
export async function countAll(folder: string, calls = CALLS): Promise<WorkCounts[]> {
  const counted: WorkCounts[] = [];
  for (const shards of SHARDS)
    counted.push(...(await countLeasehold(join(folder, `shards-${shards}`), shards, calls)));
  return [...counted, ...(await countD1Only(folder, calls))];
}

async function countLeasehold(folder: string, shards: number, calls: number): Promise<WorkCounts[]> {
  mkdirSync(folder, { recursive: true });
  const coordinator = await CountedCoordinator.start(folder, shards);
  try {
    const requests = [...(await countCalls(coordinator, calls)), ...(await countPages(coordinator, calls))];
    // The cron meets shards only to wake them.
    return shards === SHARDS[0] ? [...requests, ...(await countUpkeep(coordinator, calls))] : requests;
  } finally {
    await coordinator.stop();
  }
}
