import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { countCalls } from "./calls.ts";
import { CountedCoordinator } from "./counted-coordinator.ts";
import type { WorkCounts } from "./work-counts.ts";
import { countD1Only } from "./d1-only.ts";
import { countPages } from "./pages.ts";
import { countUpkeep } from "./upkeep.ts";

const CALLS = 20;
/** Several shards, so that a batch can touch more than one, and a single shard as the minimum. */
const SHARDS = [4, 1];

/**
 * Counts what each operation costs; the counts are the same on every machine. The calls come one after
 * another and share no messages, so under load they cost less. `folder` must be empty; it receives the state.
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
    // The cron only wakes shards, so its work is counted for one number of shards.
    return shards === SHARDS[0] ? [...requests, ...(await countUpkeep(coordinator, calls))] : requests;
  } finally {
    await coordinator.stop();
  }
}
