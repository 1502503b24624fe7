/** The fair share of each caller in an isolate. test/hosts/node/fair-shares.test.ts has the same for Node. */
import { beforeAll, expect, test, vi } from "vitest";
import type { Principal } from "../../../src/coordinator/auth/principal.ts";
import { deploymentOf } from "../../../src/coordinator/isolate/deployment.ts";
import { FairShares } from "../../../src/coordinator/api/fair-shares.ts";
import { orderOfBegins } from "../../suites/heavy-begins.ts";
import { Api, startDeployment } from "../../support/workerd/api.ts";

const callerOf = (cell: string | null, keyId = "key"): Principal => ({
  role: cell === null ? "router" : "cell",
  keyId,
  cell,
  expiresAtMs: Number.MAX_SAFE_INTEGER,
  credential: { kind: "key" },
});

/** Shares whose requests run until they are ended, with timers that fire on demand. */
class Fixture {
  nowMs = 0;
  readonly started: string[] = [];
  readonly #ends = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  readonly #timers = new Set<{ dueMs: number; fire: () => void }>();
  readonly #shares = new FairShares({
    now: () => this.nowMs,
    after: (delayMs, fire) => {
      const timer = { dueMs: this.nowMs + delayMs, fire };
      this.#timers.add(timer);
      return () => this.#timers.delete(timer);
    },
  });

  /** @param isAlone whether no other caller has begun a request just before */
  constructor(isAlone = false) {
    if (!isAlone)
      void this.#shares.run(
        callerOf("9"),
        0,
        () => {},
        async () => {},
      );
  }

  run(name: string, caller: Principal | null, bodyBytes?: number): ReturnType<FairShares["run"]> {
    return this.#shares.run(
      caller,
      bodyBytes,
      () => {},
      () => {
        this.started.push(name);
        return new Promise<void>((resolve, reject) => this.#ends.set(name, { resolve, reject }));
      },
    );
  }

  finish(name: string): void {
    this.#ends.get(name)?.resolve();
  }

  fail(name: string, error: Error): void {
    this.#ends.get(name)?.reject(error);
  }

  /** Ends requests, and lets the pause after them pass. */
  async end(...names: string[]): Promise<void> {
    for (const name of names) this.finish(name);
    await settled();
    await this.pass(1);
  }

  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    for (const timer of this.#timers)
      if (timer.dueMs <= this.nowMs && this.#timers.delete(timer)) timer.fire();
    await settled();
  }
}

/** Lets everything run that waits for nothing. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

test("[M8] a request starts at once, however many large ones of another cell wait", async () => {
  const fixture = new Fixture();
  for (let index = 0; index < 100; index += 1) void fixture.run(`large ${index}`, callerOf("1"), 100_000);
  void fixture.run("small", callerOf("2"), 100);
  await settled();
  expect(fixture.started).toEqual(["large 0", "small"]);
});

test("[M8] requests of one caller start in the order of their arrival, small ones together", async () => {
  const fixture = new Fixture();
  void fixture.run("large", callerOf(null), 8_000);
  for (let index = 0; index < 5; index += 1) void fixture.run(String(index), callerOf(null), 0);
  void fixture.run("unknown", callerOf(null));
  void fixture.run("last", callerOf(null), 0);
  await settled();
  expect(fixture.started).toEqual(["large"]);
  await fixture.end("large");
  expect(fixture.started).toEqual(["large", "0", "1"]);
  await fixture.end("1");
  expect(fixture.started.slice(3)).toEqual(["2"]);
  await fixture.end("0", "2");
  expect(fixture.started.slice(4)).toEqual(["3", "4"]);
  await fixture.end("3");
  expect(fixture.started).not.toContain("unknown");
  await fixture.end("4");
  expect(fixture.started.slice(6)).toEqual(["unknown"]);
  await fixture.end("unknown");
  expect(fixture.started.at(-1)).toBe("last");
});

test("[M8] what waits starts after a pause, in which requests of others are read", async () => {
  const fixture = new Fixture();
  for (let index = 0; index < 3; index += 1) void fixture.run(String(index), callerOf("1"), 0);
  await settled();
  fixture.finish("0");
  await settled();
  expect(fixture.started).toEqual(["0", "1"]);
  await fixture.pass(1);
  expect(fixture.started.slice(2)).toEqual(["2"]);
  // Nothing waits, so nothing has to pause.
  fixture.finish("1");
  await settled();
  void fixture.run("3", callerOf("1"), 0);
  await settled();
  expect(fixture.started.slice(3)).toEqual(["3"]);
});

test("[M8] a caller has a larger share while no other one has called for a second", async () => {
  const fixture = new Fixture(true);
  for (let index = 0; index < 150; index += 1) void fixture.run(String(index), callerOf("1"), 0);
  await settled();
  expect(fixture.started).toHaveLength(85);
  void fixture.run("other", callerOf("2"), 0);
  await fixture.end(...Array.from({ length: 84 }, (_, index) => String(index)));
  expect(fixture.started).toHaveLength(86 + 1);
  await fixture.pass(1_001);
  for (let left = 150; left > 0; left -= 1) await settled();
  expect(fixture.started).toHaveLength(150 + 1);
});

test("[M8] the keys of a cell have one share, and each other key has its own", async () => {
  const fixture = new Fixture();
  void fixture.run("cell 1, a", callerOf("1", "a"));
  void fixture.run("cell 1, b", callerOf("1", "b"));
  void fixture.run("router a", callerOf(null, "a"));
  void fixture.run("router b", callerOf(null, "b"));
  await settled();
  expect(fixture.started).toEqual(["cell 1, a", "router a", "router b"]);
});

test.each([
  { what: "a small request", bodyBytes: 0, countedMs: 6, others: 2 },
  { what: "a large request", bodyBytes: 1_048_576, countedMs: 500, others: 1 },
])(
  "[M8] $what that waits for something counts for $countedMs ms",
  async ({ bodyBytes, countedMs, others }) => {
    const fixture = new Fixture();
    for (let index = 0; index < others; index += 1)
      void fixture.run(`hangs ${index}`, callerOf("1"), bodyBytes);
    void fixture.run("next", callerOf("1"), 0);
    await fixture.pass(countedMs - 1);
    expect(fixture.started).not.toContain("next");
    await fixture.pass(1);
    expect(fixture.started).toContain("next");
  },
);

test("[M8] a clock that is set back keeps no request waiting, and refuses none", async () => {
  const fixture = new Fixture();
  fixture.nowMs = 3_600_000;
  void fixture.run("hangs", callerOf("1"), 1_048_576);
  const waiting = [0, 1, 2].map((index) => fixture.run(`waits ${index}`, callerOf("1"), 1_048_576));
  await settled();
  fixture.nowMs = 0;
  const next = fixture.run("next", callerOf("1"), 0);
  for (const name of ["hangs", "waits 0", "waits 1", "waits 2", "next"]) await fixture.end(name);
  expect(fixture.started).toEqual(["hangs", "waits 0", "waits 1", "waits 2", "next"]);
  expect((await Promise.all([...waiting, next])).map(({ ok }) => ok)).toEqual([true, true, true, true]);
});

test("[M8] a caller whose request fails gets its share back", async () => {
  const fixture = new Fixture();
  const failing = fixture.run("fails", callerOf("1"), 1_048_576);
  void fixture.run("next", callerOf("1"), 0);
  await settled();
  expect(fixture.started).toEqual(["fails"]);
  const fault = new Error("a fault");
  fixture.fail("fails", fault);
  await expect(failing).rejects.toThrow(fault);
  await fixture.pass(1);
  expect(fixture.started).toEqual(["fails", "next"]);
});

test("[M8] a caller with 1,000 requests that wait is refused, and no other caller", async () => {
  const fixture = new Fixture();
  for (let index = 0; index <= 1_000; index += 1) void fixture.run(String(index), callerOf("1"));
  expect(await fixture.run("one more", callerOf("1"))).toMatchObject({
    ok: false,
    refusal: { code: "RESOURCE_EXHAUSTED", retryAfterMs: 1_000 },
  });
  void fixture.run("other", callerOf("2"));
  await settled();
  expect(fixture.started).toEqual(["0", "other"]);
});

test("[M8] a request that has waited for 10 s is refused, and not begun", async () => {
  const fixture = new Fixture();
  // Each counts for half a second.
  for (let index = 0; index < 30; index += 1) void fixture.run(`hangs ${index}`, callerOf("1"), 1_048_576);
  const last = fixture.run("last", callerOf("1"), 0);
  for (let passedMs = 0; passedMs < 10_000; passedMs += 500) await fixture.pass(500);
  expect(await last).toMatchObject({ ok: false, refusal: { code: "RESOURCE_EXHAUSTED" } });
  expect(fixture.started).toHaveLength(21);
  // Those that are refused leave nothing behind.
  await fixture.pass(500);
  void fixture.run("next", callerOf("1"), 0);
  await fixture.pass(500);
  expect(fixture.started.slice(21)).toEqual(["next"]);
});

test("[M8] callers without a key have one share, and leave the shares of others as they are", async () => {
  const fixture = new Fixture(true);
  void fixture.run("document 0", null);
  for (let index = 0; index < 9; index += 1) void fixture.run(String(index), callerOf("1"), 0);
  void fixture.run("document 1", null);
  await settled();
  expect(fixture.started).toEqual(["document 0", "0", "1", "2", "3", "4", "5", "6", "7", "8"]);
  await fixture.end("document 0");
  expect(fixture.started.at(-1)).toBe("document 1");
});

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

test("[M8] while large begins wait, that of another cell is the next or next but one", async () => {
  const order = await orderOfBegins(api, api.env);
  expect(order).toHaveLength(21);
  expect(order.indexOf("2")).toBeLessThanOrEqual(2);
});

test("[M8] calls of the JSON API and of the wire take part of the caller's share", async () => {
  const own = new Api();
  const { fairShares } = deploymentOf(own.env);
  const run = vi.spyOn(fairShares, "run");
  const body = { buckets: [{ type: "USERNAMES", value: "somebody" }] };
  await own.json(200, "POST", "/v1/records/lookup", { key: "router", body });
  await own.json(200, "GET", "/v1/cells/1/leases", { key: "cell 1" });
  await own.send("POST", "/grpc/gitlab.cells.topology_service.claims.v1.ClaimService/ListRecords", {
    key: "cell 1",
    body: { cellId: "1" },
    headers: { "content-length": "14", "grpc-encoding": "gzip" },
  });
  await own.json(200, "GET", "/healthz", { key: null });
  await own.json(200, "GET", "/openapi.json", { key: null });
  expect(run.mock.calls.map(([caller, bodyBytes]) => [caller?.role, bodyBytes])).toEqual([
    ["router", undefined],
    ["cell", 0],
    ["cell", 112],
    [undefined, 1_024],
  ]);
});
