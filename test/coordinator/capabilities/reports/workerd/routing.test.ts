/**
 * Tests of the routes for routers that need other isolates or variables, or that watch the calls of objects.
 * All others are in test/suites/conformance.
 */
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { addressOf, claim, committed, freshName } from "../../../../suites/conformance/leases.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { counting, watchedNamespace } from "../../../../support/workerd/counting.ts";
import { hang, watchDeadlines } from "../../../../support/workerd/hang.ts";

watchDeadlines();

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

const find = async (using: Api, value: string): Promise<Record<string, unknown>> =>
  using.json(200, "GET", `/v1/route/ROUTES/${value}`, { key: "router" });

/** A name of cell 1 whose decision its shard has applied. */
async function settledName(): Promise<string> {
  const { value } = await committed(api);
  await expect.poll(async () => (await find(api, value))["settled"]).toBe(true);
  return value;
}

test("a name is found even if its cell was registered after this isolate read the directory", async () => {
  await find(api, await settledName());
  const elsewhere = new Api();
  await elsewhere.json(201, "POST", "/v1/admin/cells", {
    body: { cell_id: "9", name: "New", address: addressOf("9") },
  });
  const value = freshName();
  await api.json(201, "POST", "/v1/cells/9/leases", { key: "cell 9", body: { creates: [claim(value)] } });
  expect(await find(api, value)).toMatchObject({ cell: { id: "9", address: addressOf("9") } });
});

describe("a cell that this isolate's copy of the directory lacks", () => {
  const classify = (using: Api, body: object) => using.send("POST", "/v1/classify", { key: "router", body });

  /** An isolate whose copy of the directory is a second old, and the calls that it makes. */
  async function withOldCopy(): Promise<{ isolate: Api; calls: string[] }> {
    const { env: watched, calls } = counting(env);
    const isolate = new Api({ ...watched });
    await classify(isolate, { type: "FIRST_CELL" });
    calls.length = 0;
    const nowMs = Date.now();
    vi.spyOn(Date, "now").mockImplementation(() => nowMs + 1_000);
    onTestFinished(() => void vi.restoreAllMocks());
    return { isolate, calls };
  }

  test("is classified if it was registered meanwhile", async () => {
    const { isolate } = await withOldCopy();
    await new Api().json(201, "POST", "/v1/admin/cells", {
      body: { cell_id: "8", name: "New", address: addressOf("8") },
    });
    for (const body of [
      { type: "CELL_ID", value: "8" },
      { type: "SESSION_PREFIX", value: "cell-8" },
    ]) {
      const { status, headers } = await classify(isolate, body);
      expect([status, headers.get("cache-control")]).toEqual([200, "private, max-age=15"]);
    }
  });

  test("is absent only after the directory was read, and without that, not kept", async () => {
    const { isolate, calls } = await withOldCopy();
    const [first, second] = [
      await classify(isolate, { type: "CELL_ID", value: "77" }),
      await classify(isolate, { type: "SESSION_PREFIX", value: "cell-78" }),
    ];
    const cachingOf = ({ status, headers }: typeof first) => [status, headers.get("cache-control")];
    expect(cachingOf(first)).toEqual([404, "private, max-age=1"]);
    expect(cachingOf(second)).toEqual([404, "no-store"]);
    expect(calls).toEqual(["DIRECTORY.snapshot"]);
  });

  test("costs no message if no cell can have such an id", async () => {
    const { isolate, calls } = await withOldCopy();
    for (const value of ["junk", "", "0", "cell-", "cell-01", "9".repeat(20)]) {
      const { status, headers } = await classify(isolate, { type: "SESSION_PREFIX", value });
      expect([status, headers.get("cache-control")]).toEqual([404, "private, max-age=1"]);
    }
    expect(calls).toEqual([]);
  });

  test("is unavailable while the directory cannot be read", async () => {
    let isLost = false;
    const isolate = new Api({
      DIRECTORY: watchedNamespace("DIRECTORY", env.DIRECTORY, () =>
        isLost ? Promise.reject(new Error("lost")) : undefined,
      ),
    });
    await classify(isolate, { type: "FIRST_CELL" });
    isLost = true;
    const nowMs = Date.now();
    vi.spyOn(Date, "now").mockImplementation(() => nowMs + 1_000);
    onTestFinished(() => void vi.restoreAllMocks());
    const body = { type: "CELL_ID", value: "77" };
    const refused = await isolate.problem(503, "POST", "/v1/classify", { key: "router", body });
    expect(refused.message).toBe("the directory cannot be reached");
    expect((await classify(isolate, { type: "CELL_ID", value: "1" })).status).toBe(200);
  });
});

describe("messages", () => {
  /** The calls of one request, in an isolate that has its copies of the directory and of the types. */
  async function callsOf(method: string, path: string, body?: unknown): Promise<string[]> {
    const watched = counting(env);
    const isolate = new Api({ ...watched.env });
    const known = await settledName();
    await find(isolate, known);
    const before = watched.calls.length;
    await isolate.send(method, path, { key: "router", body });
    return watched.calls.slice(before);
  }

  test("a route takes one message, and so does a report", async () => {
    const value = await settledName();
    expect(await callsOf("GET", `/v1/route/ROUTES/${value}`)).toEqual(["CLAIM_SHARD.lookup"]);
    expect(await callsOf("GET", `/v1/route/ROUTES/${freshName()}`)).toEqual(["CLAIM_SHARD.lookup"]);
    expect(await callsOf("GET", "/v1/reports/0")).toEqual(["CLAIM_SHARD.report"]);
    expect(await callsOf("GET", "/v1/reports/0?after=0")).toEqual(["CLAIM_SHARD.report"]);
  });

  test("the addresses of cells and reports of unknown shards take none", async () => {
    expect(await callsOf("GET", "/v1/cells")).toEqual([]);
    expect(await callsOf("GET", "/v1/reports/4")).toEqual([]);
  });

  test("routes of many names take one message to each shard", async () => {
    const names = Array.from({ length: 100 }, () => ({ type: "ROUTES", value: freshName() }));
    const calls = await callsOf("POST", "/v1/route", { names });
    expect(calls).toEqual(Array.from({ length: 4 }, () => "CLAIM_SHARD.lookup"));
  });
});

describe("a route is unavailable, never absent", () => {
  const body = { names: [{ type: "ROUTES", value: freshName() }] };

  test.each([
    ["fails", 503, "UNAVAILABLE"],
    ["hangs", 504, "DEADLINE_EXCEEDED"],
  ] as const)("while its shard %s: %i", async (fate, status, code) => {
    const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, () =>
      fate === "fails" ? Promise.reject(new Error("secret internals")) : hang(),
    );
    const broken = new Api({ CLAIM_SHARD });
    for (const [method, path, sent] of [
      ["GET", `/v1/route/ROUTES/${freshName()}`, undefined],
      ["POST", "/v1/route", body],
      ["GET", "/v1/reports/0", undefined],
    ] as const) {
      const refused = await broken.problem(status, method, path, { key: "router", body: sent });
      expect(refused).toMatchObject({ code, retryable: true });
      expect(refused).not.toHaveProperty("route");
      expect(refused.detail).not.toContain("internals");
    }
  });

  test("while the ledger of its lease cannot be reached", async () => {
    const value = { found: [{ kind: "unknown" }], settled: [false], position: 7 };
    const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, () =>
      Promise.resolve({ ok: true, value }),
    );
    const unsure = new Api({ CLAIM_SHARD });
    for (const [method, path, sent] of [
      ["GET", `/v1/route/ROUTES/${freshName()}`, undefined],
      ["POST", "/v1/route", body],
    ] as const) {
      const refused = await unsure.problem(503, method, path, { key: "router", body: sent });
      expect(refused).not.toHaveProperty("route");
    }
  });

  test("while the directory cannot be read and there is no copy of it", async () => {
    const value = await settledName();
    const DIRECTORY = watchedNamespace("DIRECTORY", env.DIRECTORY, () => Promise.reject(new Error("lost")));
    const blind = new Api({ DIRECTORY });
    await blind.problem(503, "GET", `/v1/route/ROUTES/${value}`, { key: "router" });
    await blind.problem(503, "GET", "/v1/cells", { key: "router" });
  });
});

test("the list of cells says how old it is while the directory cannot be read", async () => {
  let isDown = false;
  const isolate = new Api({
    DIRECTORY: watchedNamespace("DIRECTORY", env.DIRECTORY, () =>
      isDown ? Promise.reject(new Error("down")) : undefined,
    ),
  });
  const list = () =>
    isolate.json<{ cells: object[]; age_ms: number }>(200, "GET", "/v1/cells", { key: "router" });
  const { cells, age_ms: ageMs } = await list();
  expect(ageMs).toBeLessThan(30_000);
  isDown = true;
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"], now: now + 600_000 });
  onTestFinished(() => void vi.useRealTimers());
  const old = await list();
  expect(old.cells).toEqual(cells);
  expect(old.age_ms).toBeGreaterThanOrEqual(600_000);
});

describe("while one shard", () => {
  /** A name of cell 1 on shard `on`. */
  async function ownedOn(on: number): Promise<string> {
    for (;;) {
      const value = await settledName();
      if ((await find(api, value))["shard"] === on) return value;
    }
  }

  /** An isolate whose shard 0 never answers. It would wait for it for half a minute if nobody else did. */
  const withoutShard0 = (fate: "fails" | "hangs"): Api =>
    new Api({
      CLAIM_SHARD: watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (_, shard) => {
        if (shard !== "shard-0") return undefined;
        return fate === "fails" ? Promise.reject(new Error("secret internals")) : new Promise(() => {});
      }),
      LEASEHOLD_INQUIRY_TIMEOUT_MS: "20",
      LEASEHOLD_EXCHANGE_TIMEOUT_MS: "30000",
    });

  test.each([
    ["fails", "UNAVAILABLE"],
    ["hangs", "DEADLINE_EXCEEDED"],
  ] as const)("%s, only its names are unavailable", async (fate, code) => {
    const [lost, known] = [await ownedOn(0), await ownedOn(1)];
    const names = [lost, known, lost].map((value) => ({ type: "ROUTES", value }));
    const broken = withoutShard0(fate);
    const { results } = await broken.json<{ results: unknown[] }>(200, "POST", "/v1/route", {
      key: "router",
      body: { names },
    });
    const missing = {
      name: names[0],
      shard: 0,
      unavailable: {
        code,
        detail: expect.not.stringContaining("internals") as string,
        retry_after_ms: 1_000,
      },
    };
    expect(results).toMatchObject([missing, { name: names[1], found: true, shard: 1 }, missing]);
  });

  test("fails and the others are behind, the call fails because of the one that fails", async () => {
    const names = [await ownedOn(1), await ownedOn(0)].map((value) => ({ type: "ROUTES", value }));
    const body = { names, min_position: `1:${Number.MAX_SAFE_INTEGER}` };
    const refused = await withoutShard0("fails").problem(503, "POST", "/v1/route", { key: "router", body });
    expect(refused).toMatchObject({ code: "UNAVAILABLE", detail: "Shard 0 cannot be reached." });
    expect(refused).not.toHaveProperty("field");
  });

  test.each(["fails", "hangs"] as const)("%s, a claim before its claims decides", async (fate) => {
    const claims = [{ route: freshName() }, { route: await ownedOn(1) }, { route: await ownedOn(0) }];
    // Once a shard has answered, the others have little time, so the claims before are on one shard.
    while ((await routeOf(claims[0]?.route ?? "")).shard !== 1) claims[0] = { route: freshName() };
    const broken = withoutShard0(fate);
    const answer = await broken.json<object>(200, "POST", "/v1/classify", {
      key: "router",
      body: { claims },
    });
    expect(answer).toMatchObject({ matched_claim: claims[1] });
  });

  test("fails, no claim after its claims decides", async () => {
    const claims = [{ route: await ownedOn(0) }, { route: await ownedOn(1) }];
    const refused = await withoutShard0("fails").problem(503, "POST", "/v1/classify", {
      key: "router",
      body: { claims },
    });
    expect(refused).toMatchObject({ code: "UNAVAILABLE", message: "shard 0 cannot be reached" });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("cache-control")).toBe("no-store");
  });

  /** What the answer is worth about a free name. */
  async function routeOf(value: string): Promise<{ shard: number }> {
    const { route } = await api.problem(404, "GET", `/v1/route/ROUTES/${value}`, { key: "router" });
    if (route === undefined) throw new Error("the answer has no position");
    return route;
  }
});

test("the variable LEASEHOLD_ROUTE_MAX_AGE_S limits how long routes are kept", async () => {
  const [taken, free] = [await settledName(), freshName()];
  const cachingOf = async (seconds: number, value: string): Promise<string | null> => {
    const isolate = new Api({ LEASEHOLD_ROUTE_MAX_AGE_S: String(seconds) });
    const { headers } = await isolate.send("GET", `/v1/route/ROUTES/${value}`, { key: "router" });
    return headers.get("cache-control");
  };
  expect(await cachingOf(60, taken)).toBe("private, max-age=60");
  expect(await cachingOf(60, free)).toBe("private, max-age=1");
  expect(await cachingOf(1, taken)).toBe("private, max-age=1");
  for (const value of [taken, free]) expect(await cachingOf(0, value)).toBe("no-store");
});

test("a HEAD request has the same headers as a GET request", async () => {
  const path = `/v1/route/ROUTES/${await settledName()}`;
  const [got, head] = [
    await api.send("GET", path, { key: "router" }),
    await api.send("HEAD", path, { key: "router" }),
  ];
  expect(head.text).toBe("");
  for (const name of ["cache-control", "vary", "content-type"])
    expect(head.headers.get(name)).toBe(got.headers.get(name));
});
