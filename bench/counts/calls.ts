import { randomUUID } from "node:crypto";
import type { CountedCoordinator, Lease } from "./counted-coordinator.ts";
import type { WorkCounts } from "./work-counts.ts";
import { rounds } from "./rounds.ts";

const CLAIMS = [1, 4, 16];
/** The most names that one lookup may contain. */
const LOOKUP_NAMES = 100;

/** Counts the calls that cells and routers make during normal operation. */
export async function countCalls(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts[]> {
  const counted: WorkCounts[] = [];
  for (const claims of CLAIMS) counted.push(...(await leases(coordinator, calls, claims)));
  return [...counted, ...(await refusals(coordinator, calls)), ...(await lookups(coordinator, calls))];
}

/** All begins come before the decisions, so that no operation pays for work that another one left behind. */
async function leases(coordinator: CountedCoordinator, calls: number, claims: number): Promise<WorkCounts[]> {
  const begun: Lease[] = [];
  const begin = async (): Promise<void> => void begun.push(await coordinator.begin("1", claims));
  const decide = (how: "commit" | "rollback") => async (): Promise<void> => {
    const lease = begun.shift();
    if (lease !== undefined) await coordinator.decide(lease, how);
  };
  const counted = [await coordinator.count(coordinator.work("begin", claims, rounds.begin), calls, begin)];
  counted.push(
    await coordinator.count(coordinator.work("commit", claims, rounds.decide), calls, decide("commit")),
  );
  // One more than is counted, because `count` makes one uncounted call first.
  while (begun.length <= calls) await begin();
  counted.push(
    await coordinator.count(coordinator.work("rollback", claims, rounds.decide), calls, decide("rollback")),
  );
  return counted;
}

async function refusals(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts[]> {
  const held = await coordinator.begin("1", 1);
  const refused = (): Promise<void> => coordinator.sendBegin(409, { ...held, cell: "2", uuid: randomUUID() });
  const leased = await coordinator.count(
    coordinator.work("begin refused, leased", 1, rounds.refusedLeased),
    calls,
    refused,
  );
  const replay = await coordinator.count(coordinator.work("begin again, same id", 1), calls, () =>
    coordinator.sendBegin(200, held),
  );
  await coordinator.decide(held, "commit");
  const taken = await coordinator.count(
    coordinator.work("begin refused, taken", 1, rounds.refusedTaken),
    calls,
    refused,
  );
  return [taken, leased, replay];
}

async function lookups(coordinator: CountedCoordinator, calls: number): Promise<WorkCounts[]> {
  const { client } = coordinator;
  const key = coordinator.key("router");
  const taken = await coordinator.begin("1", LOOKUP_NAMES);
  await coordinator.decide(taken, "commit");
  const held = await coordinator.begin("1", 1);
  const look = (status: number, name = "") => {
    const path = `/v1/records/ROUTES/${name}`;
    return () => client.send(status, "GET", path, key);
  };
  const body = { buckets: taken.names.map((value) => ({ type: "ROUTES", value })) };
  const counted = [
    await coordinator.count(
      coordinator.work("lookup, there", 1, rounds.lookup),
      calls,
      look(200, taken.names[0]),
    ),
    await coordinator.count(
      coordinator.work("lookup, not there", 1, rounds.lookup),
      calls,
      look(404, "nobody/has-this"),
    ),
    await coordinator.count(
      coordinator.work("lookup, held", 1, rounds.lookupHeld),
      calls,
      look(200, held.names[0]),
    ),
    await coordinator.count(coordinator.work("lookup of many", LOOKUP_NAMES), calls, () =>
      client.send(200, "POST", "/v1/records/lookup", key, body),
    ),
  ];
  await coordinator.decide(held, "rollback");
  return counted;
}
