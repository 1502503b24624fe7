/** A router over a real coordinator in this process: its HTTP API, its shards and its ledgers. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createClient } from "../../../src/users/client/index.ts";
import {
  createRoutes,
  RouterMetrics,
  type Routes,
  type RoutesOptions,
} from "../../../src/users/router/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";

let coordinator: TestCoordinator;
let nowMs: number;
let routes: Routes;
let metrics: RouterMetrics;
let requests: string[];
const underWay = new Set<Promise<Response>>();

/** The router's time passes when a test says so. What waits, waits in real time. */
const clock = {
  now: () => nowMs,
  after: (delayMs: number, ring: () => void) => {
    const timer = setTimeout(ring, delayMs);
    return () => clearTimeout(timer);
  },
};

const routerOf = (options: Partial<RoutesOptions> = {}): Routes =>
  createRoutes({
    url: coordinator.url,
    key: coordinator.keys.router,
    fetch: async (url, init) => {
      requests.push(`${init.method} ${new URL(url).pathname}`);
      const answer = coordinator.fetch(url, init);
      underWay.add(answer);
      return answer.finally(() => underWay.delete(answer));
    },
    clock,
    hooks: metrics.hooks,
    ...options,
  });

beforeEach(async () => {
  coordinator = await startTestCoordinator({ cells: ["1", "2"] });
  nowMs = 0;
  metrics = new RouterMetrics();
  requests = [];
  routes = routerOf();
});

afterEach(async () => {
  routes.close();
  await coordinator.close();
});

const username = (value: string) => ({ type: "USERNAMES", value });

const batchOf = (value: string, id: number) => ({
  bucket: username(value),
  subject: { type: "USER", id },
  source: { type: "RAILS_TABLE_USERS", id },
});

const clientOf = (cell: string) =>
  createClient({
    url: coordinator.url,
    key: coordinator.keys.cell(cell),
    cell,
    fetch: coordinator.fetch,
    backoffMs: 1,
  });

type Client = ReturnType<typeof clientOf>;
type BeginBatch = Parameters<Client["leases"]["begin"]>[0];

/** Changes a name, and waits until its shard has carried out the decision. */
async function change(cell: string, value: string, batch: BeginBatch): Promise<void> {
  const { uuid } = await clientOf(cell).leases.begin(batch);
  await clientOf(cell).leases.commit(uuid);
  const asking = createRoutes({
    url: coordinator.url,
    key: coordinator.keys.router,
    fetch: coordinator.fetch,
    maxAgeMs: 0,
    reports: false,
  });
  await expect.poll(() => asking.find(username(value))).toMatchObject({ settled: true });
  asking.close();
}

const claim = (cell: string, value: string): Promise<void> =>
  change(cell, value, { creates: [batchOf(value, 7)] } as BeginBatch);

const drop = (cell: string, value: string): Promise<void> =>
  change(cell, value, { destroys: [batchOf(value, 7)] } as BeginBatch);

/** Lets background polls end. */
async function settle(): Promise<void> {
  do {
    await Promise.allSettled(underWay);
    await new Promise((resume) => setImmediate(resume));
  } while (underWay.size > 0);
}

test("a name is found in any spelling, and remembered", async () => {
  await claim("1", "Ada");
  const found = await routes.find(username("ADA"));
  expect(found).toMatchObject({ kind: "found", cell: { id: "1" }, settled: true, layer: "coordinator" });
  expect(await routes.find(username("ADA"))).toMatchObject({ layer: "memory" });
  expect(await routes.find(username("nobody"))).toMatchObject({ kind: "none", layer: "coordinator" });
});

test("[Q5] a name that changes its owner is found at the new one within the bound", async () => {
  await claim("1", "ada");
  await routes.find(username("ada"));
  await settle();
  await routes.find(username("ada"));
  await drop("1", "ada");
  await claim("2", "ada");
  nowMs += 2_001;
  expect(await routes.find(username("ada"))).toMatchObject({ cell: { id: "2" }, layer: "coordinator" });
});

test("[Q5] a name that doesn't change is remembered for minutes", async () => {
  await claim("1", "ada");
  await routes.find(username("ada"));
  await settle();
  nowMs += 1_001;
  await routes.find(username("ada"));
  for (let second = 0; second < 120; second += 1) {
    nowMs += 1_000;
    if (second % 10 === 0) await claim("2", `other-${second}`);
    expect(await routes.find(username("ada"))).toMatchObject({ cell: { id: "1" } });
    await settle();
  }
  expect(requests.filter((each) => each.startsWith("GET /v1/route/")).length).toBeLessThanOrEqual(3);
  expect(requests.filter((each) => each.startsWith("GET /v1/reports/")).length).toBeLessThanOrEqual(122);
});

test("[Q2] case 4: a name on hold is asked for each time, and is gone after a rollback", async () => {
  const { uuid } = await clientOf("1").leases.begin({ creates: [batchOf("ada", 7)] } as BeginBatch);
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "found", settled: false });
  await clientOf("1").leases.rollback(uuid);
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "none" });
});

test("[Q9] who carries the positions of a commit finds the new name at once", async () => {
  await routes.find(username("ada"));
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "none", layer: "memory" });
  const { uuid } = await clientOf("1").leases.begin({ creates: [batchOf("ada", 7)] } as BeginBatch);
  const { positions } = await clientOf("1").leases.commit(uuid);
  const minPositions = new Map(
    Object.entries(positions ?? {}).map(([shard, position]) => [Number(shard), position]),
  );
  expect(minPositions.size).toBe(1);
  expect(await routes.find(username("ada"), { minPositions })).toMatchObject({ kind: "found" });
});

test("a wrong cell is healed with one question", async () => {
  await claim("1", "ada");
  const wrong = await routes.find(username("ada"));
  if (wrong.kind !== "found") throw new Error(wrong.kind);
  await drop("1", "ada");
  await claim("2", "ada");
  expect(await routes.refresh(username("ada"), wrong)).toMatchObject({ cell: { id: "2" } });
});

test("[Q8] case 8: during an outage, found names are stale, and all others unavailable", async () => {
  await claim("1", "ada");
  await routes.find(username("ada"));
  await routes.find(username("nobody"));
  coordinator.faults.always({ kind: "unavailable" }, {});
  nowMs += 60_000;
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "found", isStale: true });
  expect(await routes.find(username("nobody"))).toMatchObject({ kind: "unavailable" });
  coordinator.faults.clear();
  nowMs += 2_000;
  expect(await routes.find(username("ada"))).toMatchObject({ isStale: false });
  expect(metrics.text()).toContain('route_total{result="stale",layer="memory"} 1');
});

test("[Q8] a coordinator that hangs is given up", async () => {
  routes = routerOf({ timeoutMs: 50 });
  coordinator.faults.always({ kind: "hang", carriedOut: false }, {});
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "unavailable" });
});

test("many names are found with one request", async () => {
  for (const value of ["a1", "a2", "a3"]) await claim("1", value);
  requests.length = 0;
  const answers = await routes.findMany(["a1", "a2", "a3", "nobody"].map(username));
  expect(answers.map(({ kind }) => kind)).toEqual(["found", "found", "found", "none"]);
  expect(requests.filter((each) => !each.includes("/reports/"))).toEqual(["POST /v1/route"]);
});

test("names that cannot exist are told apart from the others", async () => {
  await claim("1", "ada");
  const answers = await routes.findMany([
    username("ada"),
    username("a\u0000b"),
    { type: "NO_SUCH_TYPE", value: "a" },
    username(".."),
  ]);
  expect(answers[0]).toMatchObject({ kind: "found" });
  expect(answers[1]).toMatchObject({ kind: "invalid", field: "value" });
  expect(answers[2]).toMatchObject({ kind: "invalid", field: "bucket_type" });
  expect(["none", "invalid"]).toContain(answers[3]?.kind);
});

test("the cells are listed with their addresses", async () => {
  const cells = await routes.cells();
  expect([...cells.keys()].toSorted()).toEqual(["1", "2"]);
  for (const { address } of cells.values()) expect(new URL(address).protocol).toBe("https:");
});

test("a key that is refused makes names unavailable", async () => {
  routes = routerOf({ key: "lh_wrong" });
  expect(await routes.find(username("ada"))).toMatchObject({ kind: "unavailable" });
});
