import { createRoutes, type Routes } from "leasehold/router";
import { createClient } from "leasehold/client";
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { closedLoop } from "../client/closed-loop.ts";
import { cellKeys, VARIABLES } from "../peers/cell-keys.ts";

/** Rates of one caller, in lookups per second. */
export interface LookupRates {
  /** From the memory of a router whose reports are fresh. */
  memory: number;
  /** Each lookup is a request to the coordinator. */
  coordinator: number;
}

const NAMES = 1_000;
const BATCH = 500;
const OWNER = "1";

/** The names that a run claims and looks up. */
const names = Array.from({ length: NAMES }, (_, index) => ({
  type: "ROUTES" as const,
  value: `bench-group-${index % 50}/project-${index}`,
}));

/**
 * Measures how often one caller can look names up, from memory and at the coordinator, in turns of `seconds`.
 * Both use the same package, so the difference is the layer alone.
 */
export async function measureLookups(
  folder: string,
  rounds: number,
  seconds: number,
): Promise<LookupRates[]> {
  const coordinator = await startCoordinator({ port: 0, stateFolder: folder, variables: VARIABLES });
  const { url, keys } = coordinator;
  const remembering = createRoutes({ url, key: keys.router });
  // Nothing is kept, so every lookup asks. A bound of 0 would only be met by an answer of this moment.
  const asking = createRoutes({ url, key: keys.router, maxAgeMs: 0, negativeMaxAgeMs: 0, reports: false });
  try {
    const cell = (await cellKeys(url, keys.operator))[OWNER] ?? "";
    await claim(url, cell);
    await remembering.findMany(names);
    const measured: LookupRates[] = [];
    for (let round = 0; round < rounds; round += 1)
      measured.push({
        memory: await rateOf(remembering, "memory", seconds),
        coordinator: await rateOf(asking, "coordinator", seconds),
      });
    return measured;
  } finally {
    remembering.close();
    asking.close();
    await coordinator.stop();
  }
}

async function rateOf(routes: Routes, layer: string, seconds: number): Promise<number> {
  let next = 0;
  let others = 0;
  const {
    turns,
    errors,
    seconds: took,
  } = await closedLoop({
    clients: 1,
    seconds,
    turn: async () => {
      const name = names[next++ % NAMES];
      const found = name === undefined ? undefined : await routes.find(name);
      if (found?.kind !== "found") return false;
      if (found.layer !== layer) others += 1;
      return true;
    },
  });
  if (errors > 0) throw new Error(`${errors} lookups of claimed names did not find their cell`);
  // A router asks for a report each second, and again for a name that has changed.
  if (others > turns / 100) throw new Error(`${others} of ${turns} answers did not come from the ${layer}`);
  return turns / took;
}

async function claim(url: string, key: string): Promise<void> {
  const { leases } = createClient({ url, key, cell: OWNER });
  for (let from = 0; from < NAMES; from += BATCH) {
    const creates = names.slice(from, from + BATCH).map((bucket, index) => ({
      bucket,
      subject: { type: "NAMESPACE" as const, id: String(from + index + 1) },
      source: { type: "RAILS_TABLE_ROUTES" as const, id: String(from + index + 1) },
    }));
    const { uuid } = await leases.begin({ creates });
    await leases.commit(uuid);
  }
}
