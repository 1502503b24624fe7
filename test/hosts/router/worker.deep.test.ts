/** The router Worker in front of a real coordinator, and the Worker without its settings. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startCoordinator, type Coordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { startRouterWorker } from "../../../src/hosts/router/router-worker.ts";
import { createClient, type Client } from "../../../src/users/client/index.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import { TestCell } from "./test-cell.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-router-worker-"));
const cells = [new TestCell("1"), new TestCell("2")];
const METRICS_KEY = "the-key-of-the-metrics-in-the-tests";
let coordinator: Coordinator;

beforeAll(async () => {
  coordinator = await startCoordinator({ port: 0, stateFolder: join(folder, "state") });
  const operator = createClient({ url: coordinator.url, key: coordinator.keys.operator });
  for (const cell of cells) await operator.cells.change(cell.id, { address: (await cell.start()).address });
});

afterAll(async () => {
  await coordinator?.stop();
  await Promise.all(cells.map((cell) => cell.stop()));
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a router, and returns its URL. */
async function startRouter(variables: Record<string, string>): Promise<{ url: string; log: string[] }> {
  const log: string[] = [];
  const port = await freePort();
  const router = await startRouterWorker({ port, variables, log: (line) => log.push(line) });
  onTestFinished(() => router.stop());
  return { url: router.url, log };
}

const clientOf = (cell: string): Client =>
  createClient({ url: coordinator.url, key: coordinator.keys.cells[cell] ?? "", cell });

const claim = (value: string) => ({
  bucket: { type: "ROUTES", value },
  subject: { type: "USER", id: 1 },
  source: { type: "RAILS_TABLE_ROUTES", id: 1 },
});

/** Claims or gives up a name at a cell, in its rows and at the coordinator. */
async function change(kind: "creates" | "destroys", cell: string, value: string): Promise<void> {
  const { leases } = clientOf(cell);
  const { uuid } = await leases.begin({ [kind]: [claim(value)] });
  const { names } = cells.find(({ id }) => id === cell) ?? new TestCell(cell);
  if (kind === "creates") names.add(value);
  else names.delete(value);
  await leases.commit(uuid);
}

test.each(["on", "off"])(
  "case 19: a name that moves is not looked for at its old cell, with reports %s",
  async (reports) => {
    const { url } = await startRouter({
      LEASEHOLD_URL: coordinator.url,
      LEASEHOLD_KEY: coordinator.keys.router,
      ROUTER_ALLOW_LOCAL_HTTP: "on",
      ROUTER_REPORTS: reports,
      ROUTER_MAX_AGE_MS: "60000",
    });
    const servedBy = async (path: string): Promise<unknown> => {
      const answer = await fetch(`${url}${path}`);
      return answer.ok ? ((await answer.json()) as { cell: string }).cell : answer.status;
    };
    const name = `moving-${reports}`;
    await change("creates", "1", name);
    expect(await servedBy(`/${name}`)).toBe("1");
    for (const [from, to] of [
      ["1", "2"],
      ["2", "1"],
    ] as const) {
      await change("destroys", from, name);
      // The old cell refuses the request, and the coordinator knows that the name is free.
      expect(await servedBy(`/${name}/page`)).toBe(404);
      await change("creates", to, name);
      // The router may remember for a moment that the name was free.
      await expect.poll(() => servedBy(`/${name}/page`)).toBe(to);
    }
  },
);

test("a client that carries the positions of its sign-up finds its page at once", async () => {
  const { url } = await startRouter({
    LEASEHOLD_URL: coordinator.url,
    LEASEHOLD_KEY: coordinator.keys.router,
    ROUTER_ALLOW_LOCAL_HTTP: "on",
    ROUTER_REPORTS: "off",
    // The router believes for a minute that the name is free.
    ROUTER_NEGATIVE_MAX_AGE_MS: "60000",
    ROUTER_MAX_AGE_MS: "60000",
  });
  expect((await fetch(`${url}/newcomer`)).status).toBe(404);
  const path = `${coordinator.url}/v1/cells/2/leases/00000000-0000-4000-8000-000000000001`;
  const headers = {
    authorization: `Bearer ${coordinator.keys.cells["2"]}`,
    "content-type": "application/json",
  };
  await fetch(path, { method: "PUT", headers, body: JSON.stringify({ creates: [claim("newcomer")] }) });
  cells[1]?.names.add("newcomer");
  const committed = await fetch(`${path}/commit`, { method: "POST", headers });
  const { positions } = (await committed.json()) as { positions: Record<string, number> };
  expect((await fetch(`${url}/newcomer`)).status).toBe(404);
  const cookie = `Leasehold-Position=${Object.entries(positions)
    .map(([shard, position]) => `${shard}:${position}`)
    .join(",")}`;
  const answer = await fetch(`${url}/newcomer`, { headers: { cookie } });
  expect(await answer.json()).toMatchObject({ cell: "2" });
});

test("two routers that take each other for a cell end a request with 508", async () => {
  const start = async (): Promise<{ url: string; scripted: ScriptedCoordinator }> => {
    const scripted = new ScriptedCoordinator();
    onTestFinished(() => scripted.stop());
    const { url } = await startRouter({
      LEASEHOLD_URL: await scripted.start(),
      LEASEHOLD_KEY: "key-of-a-router",
      ROUTER_ALLOW_LOCAL_HTTP: "on",
      ROUTER_REPORTS: "off",
      ROUTER_METRICS_KEY: METRICS_KEY,
    });
    return { url, scripted };
  };
  const [one, other] = [await start(), await start()];
  for (const [{ scripted }, { url }] of [
    [one, other],
    [other, one],
  ] as const) {
    scripted.addresses.set("1", url);
    scripted.move("ada", "1");
  }
  const answer = await fetch(`${one.url}/ada`);
  expect([answer.status, await answer.json()]).toMatchObject([508, { reason: "LOOP" }]);
  const results = async (url: string): Promise<string[]> => {
    const headers = { authorization: `Bearer ${METRICS_KEY}` };
    const text = await (await fetch(`${url}/-/router/metrics`, { headers })).text();
    return text.split("\n").filter((line) => line.startsWith("proxy_requests_total"));
  };
  const forwarded = 'proxy_requests_total{result="forwarded"} 1';
  expect((await results(one.url)).toSorted()).toEqual([forwarded, 'proxy_requests_total{result="loop"} 1']);
  expect(await results(other.url)).toEqual([forwarded]);
});

test.each([
  ["without its settings", {}, /^LEASEHOLD_KEY is missing; set it to a key with the role router$/],
  [
    "with a rule that is wrong",
    { LEASEHOLD_KEY: "key", ROUTER_RULES: '[{"id":"admins","action":"secret-of-the-rules"}]' },
    /`rules\[0\]\.action` must be one of .*"secret-of-the-rules"/,
  ],
])("a router %s says why only to the holder of the key, and in the log", async (_, variables, fault) => {
  const settings = { LEASEHOLD_URL: coordinator.url, ROUTER_METRICS_KEY: METRICS_KEY, ...variables };
  const { url, log } = await startRouter(settings);
  const health = async (key?: string): Promise<unknown[]> => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const answer = await fetch(`${url}/-/router/health`, { headers });
    return [answer.status, await answer.json()];
  };
  expect(await health()).toEqual([500, { status: "misconfigured" }]);
  expect(await health("wrong")).toEqual([500, { status: "misconfigured" }]);
  const detail = expect.stringMatching(fault) as unknown;
  expect(await health(METRICS_KEY)).toEqual([500, { status: "misconfigured", detail }]);
  expect((await fetch(`${url}/ada`)).status).toBe(500);
  expect((await fetch(`${url}/-/router/metrics`)).status).toBe(404);
  await expect.poll(() => log.filter((line) => line.includes('"router_misconfigured"')).length).toBe(1);
  expect(log.map((line) => JSON.parse(line) as unknown)).toContainEqual({
    event: "router_misconfigured",
    detail,
  });
});

test("a router whose key of the metrics is too short shows nobody what is wrong", async () => {
  const { url } = await startRouter({ LEASEHOLD_URL: coordinator.url, ROUTER_METRICS_KEY: "short" });
  for (const authorization of ["Bearer short", "Bearer ", "Bearer undefined"]) {
    const health = await fetch(`${url}/-/router/health`, { headers: { authorization } });
    expect(await health.json()).toEqual({ status: "misconfigured" });
  }
});
