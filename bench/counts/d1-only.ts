import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { peerKey, PEER_ROUTER } from "../peers/batch.ts";
import { startD1Only } from "../peers/start-d1-only.ts";
import { CountingClient } from "./counting-client.ts";
import type { WorkCounts, Work } from "./work-counts.ts";
import { batchOf, PlacedNames } from "./placed-names.ts";

const CLAIMS = [1, 4, 16];
const CELL = "1";
const KEY = peerKey(CELL);
/** Each call waits for D1 once. */
const ROUNDS = 1;

/**
 * A lease that stays granted and is the last in the index. A commit reads one index row beyond its own;
 * without this lease it could find the end of the index instead.
 */
const LAST = "ffffffff-ffff-4fff-bfff-ffffffffffff";

const workOf = (work: string, claims: number): Work => ({
  system: "d1-only",
  work,
  shards: 0,
  claims,
  shardsTouched: 0,
  rounds: ROUNDS,
});

/** Counts the same calls for the peer that stores everything in D1. */
export async function countD1Only(folder: string, calls: number): Promise<WorkCounts[]> {
  const worker = join(import.meta.dirname, "d1-only-worker.ts");
  const { miniflare, url } = await startD1Only(join(folder, "d1-only"), worker);
  try {
    const client = new CountingClient(url);
    await begin(client, names.fresh(1), LAST);
    const counted: WorkCounts[] = [];
    for (const claims of CLAIMS) counted.push(...(await leases(client, calls, claims)));
    return [...counted, ...(await lookups(client, calls))];
  } finally {
    await miniflare.dispose();
  }
}

const names = new PlacedNames(1);

async function begin(
  client: CountingClient,
  batch: readonly string[],
  lease: string = randomUUID(),
): Promise<string> {
  const path = `/v1/cells/${CELL}/leases/${lease}`;
  await client.send(201, "PUT", path, KEY, batchOf(batch));
  return path;
}

async function leases(client: CountingClient, calls: number, claims: number): Promise<WorkCounts[]> {
  const begun: string[] = [];
  const begins = await client.count(workOf("begin", claims), calls, async () =>
    begun.push(await begin(client, names.fresh(claims))),
  );
  const commits = await client.count(workOf("commit", claims), calls, () =>
    client.send(200, "POST", `${begun.shift()}/commit`, KEY),
  );
  return [begins, commits];
}

async function lookups(client: CountingClient, calls: number): Promise<WorkCounts[]> {
  const batch = names.fresh(1);
  const path = await begin(client, batch);
  await client.send(200, "POST", `${path}/commit`, KEY);
  const refused = (): Promise<unknown> =>
    client.send(409, "PUT", `/v1/cells/${CELL}/leases/${randomUUID()}`, KEY, batchOf(batch));
  return [
    await client.count(workOf("begin refused, taken", 1), calls, refused),
    await client.count(workOf("lookup, there", 1), calls, () =>
      client.send(200, "GET", `/v1/records/ROUTES/${batch[0]}`, PEER_ROUTER),
    ),
    await client.count(workOf("lookup, not there", 1), calls, () =>
      client.send(404, "GET", "/v1/records/ROUTES/nobody/has-this", PEER_ROUTER),
    ),
  ];
}
