/** The test coordinator: its options, time, restarts and end. */
import { execFile } from "node:child_process";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { promisify } from "node:util";
import { v4 as newUuid } from "uuid";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  startTestCoordinator,
  type TestCoordinator,
  type TestCoordinatorOptions,
} from "../../../src/users/testing/index.ts";
import { Cell } from "./cell.ts";

const DAY_MS = 86_400_000;

const started: TestCoordinator[] = [];

async function start(options?: TestCoordinatorOptions): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator(options);
  started.push(coordinator);
  return coordinator;
}

afterEach(async () => {
  for (const coordinator of started.splice(0)) await coordinator.close();
});

async function stale({ url, fetch, keys }: TestCoordinator): Promise<unknown> {
  const response = await fetch(`${url}/v1/leases/stale`, {
    headers: { authorization: `Bearer ${keys.operator}` },
  });
  return ((await response.json()) as { leases: { uuid: string }[] }).leases.map(({ uuid }) => uuid);
}

test("[B11] a begin waits no longer when its caller closes the connection", async () => {
  const { url, fetch, keys } = await start({ cells: ["1", "2"] });
  const body = JSON.stringify({
    creates: [
      {
        bucket: { type: "ROUTES", value: "ada" },
        subject: { type: "NAMESPACE", id: "1" },
        source: { type: "RAILS_TABLE_ROUTES", id: "1" },
      },
    ],
    wait_ms: 30_000,
  });
  const uuids = [newUuid(), newUuid(), newUuid()] as const;
  const call = (cell: "1" | "2", path: string, init: RequestInit): Promise<Response> =>
    fetch(`${url}/v1/cells/${cell}/leases/${path}`, {
      ...init,
      headers: { authorization: `Bearer ${keys.cell(cell)}`, "content-type": "application/json" },
    });
  const begin = (cell: "1" | "2", uuid: string, signal?: AbortSignal): Promise<Response> =>
    call(cell, uuid, { method: "PUT", body, ...(signal === undefined ? {} : { signal }) });
  expect((await begin("1", uuids[0])).status).toBe(201);
  const leaving = new AbortController();
  const left = begin("2", uuids[1], leaving.signal);
  const stays = begin("2", uuids[2]);
  const passTime = async (): Promise<void> => {
    for (let n = 0; n < 30; n += 1) await call("1", uuids[0], { method: "GET" });
  };
  // Both begins get to the queue.
  await passTime();
  leaving.abort();
  await expect(left).rejects.toThrow();
  // The coordinator learns that the connection is closed.
  await passTime();
  expect((await call("1", `${uuids[0]}/rollback`, { method: "POST" })).status).toBe(200);
  expect((await stays).status).toBe(201);
  expect((await call("2", uuids[1], { method: "GET" })).status).toBe(404);
});

describe("options", () => {
  test.each<[wrong: object, sentence: string]>([
    [{ cells: "1" }, "`cells` must be a list of ids"],
    [{ cells: ["a"] }, '`cells` must be ids, which are decimal strings above 0; "a" is not'],
    [{ cells: [1] }, "`cells` must be ids"],
    [{ cells: ["1", "1"] }, "`cells` must not have the same id twice"],
    [{ shards: 0 }, "`shards` must be a whole number from 1 to"],
    [{ shards: 1.5 }, "`shards` must be a whole number"],
    [{ cell: ["1"] }, "startTestCoordinator has no option `cell`"],
    [{ variables: { LEASEHOLD_BATCH_OP: "1" } }, "`variables` must not have LEASEHOLD_BATCH_OP:"],
    [{ variables: { LEASEHOLD_BATCH_OPS: 1 } }, "`variables.LEASEHOLD_BATCH_OPS` must be a string"],
    [
      { variables: { LEASEHOLD_BATCH_OPS: "0" } },
      "LEASEHOLD_BATCH_OPS must be a whole number of ops from 1 to 5000",
    ],
    [{ variables: { LEASEHOLD_SHARDS: "8" } }, "give the number of shards as `shards`"],
    [
      { variables: { LEASEHOLD_SIGNING_SECRET: "x" } },
      "`variables` must not have LEASEHOLD_SIGNING_SECRET: it does not exist, or has no effect in tests",
    ],
  ])("%j are refused with a clear message", async (wrong, sentence) => {
    await expect(startTestCoordinator(wrong)).rejects.toThrow(sentence);
  });

  test("[M6] variables reach the Worker and the objects", async () => {
    const coordinator = await start({
      cells: ["7"],
      shards: 1,
      variables: { LEASEHOLD_OUTSTANDING_LEASES: "1" },
    });
    const cell = new Cell(coordinator, "7");
    expect((await cell.begin("ada")).status).toBe(201);
    const refused = await cell.begin("grace");
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ reason: "TOO_MANY_LEASES" });
  });

  test("[M6] a shard that holds as many names as it may refuses begins until some are released", async () => {
    const variables = { LEASEHOLD_HELD_NAMES: "40000", LEASEHOLD_BATCH_OPS: "5000" };
    const coordinator = await start({ cells: ["7"], shards: 1, variables });
    const cell = new Cell(coordinator, "7");
    // One cell may have half of them.
    const uuids = Array.from({ length: 4 }, () => newUuid());
    for (const uuid of uuids) {
      const creates = Array.from({ length: 5_000 }, (_, n) => ({
        bucket: { type: "ROUTES", value: `name-${uuid}-${n}` },
        subject: { type: "NAMESPACE", id: 1 },
        source: { type: "RAILS_TABLE_ROUTES", id: 1 },
      }));
      expect((await cell.call("PUT", `/${uuid}`, { creates })).status).toBe(201);
    }
    const refused = await cell.begin("one-more");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({ reason: "SHARD_HOLDS_FULL", retryable: true });
    await cell.rollback(uuids[0] ?? "");
    expect((await cell.begin("one-more")).status).toBe(201);
  });

  test("only the given cells have keys", async () => {
    const { keys } = await start({ cells: ["7"] });
    expect(keys.cell("7")).toMatch(/^lhk_/);
    expect(() => keys.cell("1")).toThrow("cell 1 has no key: the coordinator was started with the cells 7");
  });

  test("two coordinators share nothing", async () => {
    const [one, other] = [await start(), await start()];
    expect((await new Cell(one).begin("ada")).status).toBe(201);
    expect((await new Cell(other).begin("ada")).status).toBe(201);
    const foreign = await one.fetch(`${one.url}/v1/limits`, {
      headers: { authorization: `Bearer ${other.keys.operator}` },
    });
    expect(foreign.status).toBe(401);
  });
});

test("nothing is logged by default", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const ask = async (options: TestCoordinatorOptions): Promise<number> => {
    const { url, fetch } = await start(options);
    await fetch(`${url}/healthz`);
    return log.mock.calls.length;
  };
  const silent = await ask({});
  const loud = await ask({ variables: { LEASEHOLD_REQUEST_LOG: "all" } });
  log.mockRestore();
  expect(silent).toBe(0);
  expect(loud).toBeGreaterThan(0);
});

test("works while a test framework's fake timers stand still", async () => {
  vi.useFakeTimers();
  try {
    const coordinator = await start();
    const uuid = newUuid();
    expect((await new Cell(coordinator).begin("ada", uuid)).status).toBe(201);
    await coordinator.advance(60_000);
    expect((await new Cell(coordinator).lease(uuid))?.age_ms).toBe(60_000);
  } finally {
    vi.useRealTimers();
  }
});

describe("fetch", () => {
  test("accepts the arguments of the global fetch", async () => {
    const { url, fetch } = await start();
    for (const given of [`${url}/healthz`, new URL("/healthz", url), new Request(`${url}/healthz`)])
      expect((await fetch(given)).status).toBe(200);
  });

  test("reaches nothing else", async () => {
    const { fetch } = await start();
    await expect(fetch("https://elsewhere.test/healthz")).rejects.toMatchObject({
      name: "TypeError",
      message: "fetch failed",
    });
    await expect(fetch("/healthz")).rejects.toThrow(TypeError);
  });
});

describe("time", () => {
  test("makes leases older, and stale", async () => {
    const coordinator = await start();
    const [cell, uuid] = [new Cell(coordinator), newUuid()];
    await cell.begin("ada", uuid);
    await coordinator.cron();
    expect(await stale(coordinator)).toEqual([]);
    await coordinator.advance(600_000);
    expect((await cell.lease(uuid))?.age_ms).toBeGreaterThanOrEqual(600_000);
    expect(await stale(coordinator)).toEqual([uuid]);
  });

  test("[S1] deletes old outcomes", async () => {
    const coordinator = await start();
    const [cell, uuid] = [new Cell(coordinator), newUuid()];
    await cell.begin("ada", uuid);
    await cell.commit(uuid);
    await coordinator.advance(2 * DAY_MS);
    expect((await cell.lease(uuid))?.state).toBe("COMMITTED");
    // The first run copies the outcome to D1. After that it may be deleted.
    await coordinator.cron();
    await coordinator.cron();
    expect(await cell.lease(uuid)).toBeUndefined();
  });

  test("expires keys", async () => {
    const coordinator = await start();
    await coordinator.advance(401 * DAY_MS);
    const refused = await new Cell(coordinator).begin("ada");
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ reason: "KEY_EXPIRED" });
  });

  test("advances only by a number of milliseconds, 0 or more", async () => {
    const coordinator = await start();
    for (const ms of [-1, Number.NaN, Infinity])
      await expect(coordinator.advance(ms)).rejects.toThrow(
        "`ms` must be a number of milliseconds, 0 or more",
      );
    await coordinator.advance(0);
  });
});

describe("a restart", () => {
  test("loses nothing that the coordinator acknowledged", async () => {
    const coordinator = await start();
    const cell = new Cell(coordinator);
    const [granted, committed] = [newUuid(), newUuid()];
    await cell.begin("ada", granted);
    await cell.begin("grace", committed);
    await cell.commit(committed);
    await coordinator.restart();
    expect((await cell.lease(granted))?.state).toBe("GRANTED");
    expect((await cell.lease(committed))?.state).toBe("COMMITTED");
    expect((await new Cell(coordinator, "2").begin("grace")).status).toBe(409);
  });

  test.each([1, 3, 5, 7, 9, 12])(
    "[B7] during begins, %i turns later: each can be repeated, and all can be rolled back",
    async (turns) => {
      const coordinator = await start();
      const cell = new Cell(coordinator);
      const leases = Array.from({ length: 30 }, (_, index) => ({ name: `name-${index}`, uuid: newUuid() }));
      const calls = leases.map(({ name, uuid }) => cell.begin(name, uuid));
      for (let turn = 0; turn < turns; turn += 1) await new Promise((resume) => setImmediate(resume));
      await coordinator.restart();
      const statuses = (await Promise.all(calls)).map(({ status }) => status);
      expect(new Set(statuses).isSubsetOf(new Set([201, 503, 504]))).toBe(true);
      for (const [index, { name, uuid }] of leases.entries()) {
        const again = await cell.begin(name, uuid);
        if (statuses[index] === 201) expect(again.status).toBe(200);
        else expect([200, 201]).toContain(again.status);
        await cell.rollback(uuid);
      }
      for (const { name } of leases) expect((await new Cell(coordinator, "2").begin(name)).status).toBe(201);
    },
  );
});

describe("the end", () => {
  test("rejects calls that are under way, and all later ones", async () => {
    const coordinator = await start();
    const cell = new Cell(coordinator);
    coordinator.faults.next({ kind: "hang", carriedOut: false });
    coordinator.faults.next({ kind: "delay", ms: 60_000 });
    const calls = [cell.begin("ada"), cell.begin("grace"), cell.begin("joan")].map((call) =>
      expect(call).rejects.toThrow("fetch failed"),
    );
    await Promise.resolve();
    await coordinator.close();
    await Promise.all(calls);
    await expect(cell.begin("ada")).rejects.toMatchObject({
      message: "fetch failed",
      cause: { message: "the test coordinator is closed" },
    });
    for (const work of [() => coordinator.advance(1), () => coordinator.cron(), () => coordinator.restart()])
      await expect(work()).rejects.toThrow("the test coordinator is closed");
    await coordinator.close();
  });

  // This also shows that it needs only Node and type stripping, and no bundler.
  test.each([
    ["closed", "await coordinator.close();"],
    ["forgotten", ""],
  ])("keeps no process alive, whether it was %s or not", async (_, end) => {
    const entry = pathToFileURL(join(import.meta.dirname, "../../../src/users/testing/index.ts")).href;
    const script = `
      import { startTestCoordinator } from ${JSON.stringify(entry)};
      const coordinator = await startTestCoordinator();
      const bucket = { type: "ROUTES", value: "ada" };
      const of = { subject: { type: "NAMESPACE", id: 1 }, source: { type: "RAILS_TABLE_ROUTES", id: 1 } };
      const body = JSON.stringify({ creates: [{ bucket, ...of }] });
      const authorization = "Bearer " + coordinator.keys.cell("1");
      const headers = { authorization, "content-type": "application/json" };
      const url = coordinator.url + "/v1/cells/1/leases";
      const begun = await coordinator.fetch(url, { method: "POST", headers, body });
      console.log(begun.status);
      ${end}`;
    const ran = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      timeout: 200_000,
    });
    expect(ran.stdout).toBe("201\n");
  });
});
