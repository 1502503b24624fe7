import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { countCalls } from "./calls.ts";
import { CountedCoordinator } from "./counted-coordinator.ts";
import { startStandalone } from "./counted-standalone.ts";
import { CountingClient } from "./counting-client.ts";
import { withCycles } from "./cycles.ts";
import type { WorkCounts } from "./work-counts.ts";
import { countD1Only } from "./d1-only.ts";
import { countPages } from "./pages.ts";
import { countRiding } from "./riding.ts";
import { countUpkeep } from "./upkeep.ts";

/** Further calls cost the same. */
const CALLS = 5;
/** Several shards, so that a batch can touch more than one, and a single shard as the minimum. */
const SHARDS = [4, 1];

/**
 * Counts what each operation costs; the counts are the same on every machine. The calls come one after
 * another and share no messages, so under load they cost less. `folder` must be empty; it receives the state.
 */
export async function countAll(folder: string): Promise<WorkCounts[]> {
  // The standalone servers run in this process, so nothing else does meanwhile.
  const syncs = new Map<number, Syncs>();
  for (const shards of SHARDS) syncs.set(shards, await countSyncs(shards));
  const counted = await Promise.all([
    ...SHARDS.map((shards) =>
      countLeasehold(join(folder, `shards-${shards}`), shards, syncs.get(shards) ?? []),
    ),
    countD1Only(folder, CALLS),
    ...SHARDS.map((shards) => countWithRiding(join(folder, `riding-${shards}`), shards)),
  ]);
  return withCycles(counted.flat());
}

type Syncs = (number | null)[];

async function countSyncs(shards: number): Promise<Syncs> {
  const coordinator = await startStandalone(shards, variablesOf(shards));
  const counted = await countCalls(coordinator, CALLS);
  await coordinator.stop();
  return counted.map(({ syncs }) => syncs);
}

const variablesOf = (shards: number): Record<string, string> => ({
  LEASEHOLD_REQUEST_LOG: "errors",
  LEASEHOLD_SHARDS: String(shards),
  // A decision that shared the message of a later begin would be counted there.
  LEASEHOLD_DECISION_WAIT_MS: "0",
});

/** @param syncs - of the first operations, which are the calls */
const countLeasehold = (folder: string, shards: number, syncs: Syncs): Promise<WorkCounts[]> =>
  onWorker(folder, shards, variablesOf(shards), async (coordinator) => {
    const calls = await countCalls(coordinator, CALLS);
    const counted = calls.map((each, index) => ({ ...each, syncs: syncs[index] ?? null }));
    counted.push(...(await countPages(coordinator, CALLS)));
    // The cron only wakes shards, so its work is counted for one number of shards.
    return shards === SHARDS[0] ? [...counted, ...(await countUpkeep(coordinator, CALLS))] : counted;
  });

const countWithRiding = (folder: string, shards: number): Promise<WorkCounts[]> => {
  const { LEASEHOLD_DECISION_WAIT_MS: _, ...variables } = variablesOf(shards);
  return onWorker(folder, shards, variables, async (coordinator) => [await countRiding(coordinator)]);
};

async function onWorker(
  folder: string,
  shards: number,
  variables: Record<string, string>,
  count: (coordinator: CountedCoordinator) => Promise<WorkCounts[]>,
): Promise<WorkCounts[]> {
  mkdirSync(folder, { recursive: true });
  const entryPoint = join(import.meta.dirname, "worker.ts");
  const running = await startCoordinator({ port: 0, stateFolder: folder, variables, entryPoint });
  try {
    return await count(await CountedCoordinator.start(shards, running, new CountingClient(running.url)));
  } finally {
    await running.stop();
  }
}
