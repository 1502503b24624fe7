/** The cache between routers: it makes answers faster or it is left out, but never changes them. */
import { describe, expect, test } from "vitest";
import type { FailureEvent } from "../../../src/users/router/hooks.ts";
import type { RouteAnswer } from "../../../src/users/router/lookups/routes.ts";
import {
  workersCache,
  type RouteCache,
  type SharedCache,
} from "../../../src/users/router/lookups/shared-cache.ts";
import type { VirtualClock } from "../../support/virtual-clock.ts";
import { name, routerOf, ScriptedSource, world } from "./scripted-source.ts";

class FakeCache implements SharedCache {
  readonly entries = new Map<string, { value: string; putMs: number; ttlMs: number }>();
  readonly #clock: VirtualClock;
  gets = 0;
  fault: "throws" | "rejects" | "hangs" | "garbage" | undefined;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get(key: string): ReturnType<SharedCache["get"]> {
    this.gets += 1;
    if (this.fault === "garbage") return Promise.resolve({ value: "<html>", ageMs: 0 });
    return this.#faulty(() => {
      const entry = this.entries.get(key);
      const ageMs = entry === undefined ? Infinity : this.#clock.now() - entry.putMs;
      return entry === undefined || ageMs > entry.ttlMs ? undefined : { value: entry.value, ageMs };
    });
  }

  put(key: string, value: string, ttlMs: number): Promise<void> {
    return this.#faulty(() => {
      this.entries.set(key, { value, putMs: this.#clock.now(), ttlMs });
    });
  }

  #faulty<Result>(work: () => Result): Promise<Result> {
    if (this.fault === "throws") throw new Error("no cache");
    if (this.fault === "rejects") return Promise.reject(new Error("no cache"));
    if (this.fault === "hangs") return new Promise(() => {});
    return Promise.resolve(work());
  }
}

const coordinator = "https://leasehold.example.com";

/** Two routers with one cache. */
function pair(options: Parameters<typeof world>[0] = {}) {
  const { clock } = world();
  const source = new ScriptedSource(clock);
  const cache = new FakeCache(clock);
  const failures: FailureEvent[] = [];
  const router = () =>
    routerOf(
      source,
      { sharedCache: { cache, coordinator }, ...options },
      {
        onFailure: (event) => failures.push(event),
      },
    );
  return { clock, source, cache, failures, first: router(), second: router(), router };
}

const byAge = { reports: false };

describe("two routers", () => {
  test("[Q4] share an answer, and its age counts from the first one's question", async () => {
    const { clock, source, first, second } = pair(byAge);
    source.claim("a", "1");
    source.delayMs = 400;
    await clock.runUntil(first.find(name("a")));
    await clock.pass(3_000);
    expect(await second.find(name("a"))).toMatchObject({ layer: "shared_cache", ageMs: 3_400 });
    await clock.pass(1_600);
    expect(await second.find(name("a"))).toMatchObject({ layer: "memory", ageMs: 5_000 });
    await clock.pass(1);
    expect(await clock.runUntil(second.find(name("a")))).toMatchObject({ layer: "coordinator" });
  });

  test("[Q8] don't share an answer that a cell has refused", async () => {
    const { clock, source, first } = pair(byAge);
    source.claim("a", "1");
    const wrong = await first.find(name("a"));
    if (wrong.kind !== "found") throw new Error("not found");
    await clock.pass(10);
    source.isDown = true;
    expect(await first.refresh(name("a"), wrong)).toMatchObject({ kind: "unavailable" });
    expect(await first.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q4] case 5: two layers of 5 s don't make answers of 10 s", async () => {
    const { clock, source, first, second } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    await clock.pass(4_999);
    await second.find(name("a"));
    source.claim("a", "2");
    await clock.pass(2);
    expect(await second.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
  });

  test("[Q4] nothing goes by the clock of another router", async () => {
    const { clock, source, cache, first } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    // The other router's clock is an hour ahead.
    const ahead = {
      now: () => clock.now() + 3_600_000,
      after: (delayMs: number, ring: () => void) => clock.after(delayMs, ring),
    };
    const second = routerOf(source, { ...byAge, sharedCache: { cache, coordinator }, clock: ahead });
    await clock.pass(1_000);
    expect(await second.find(name("a"))).toMatchObject({ layer: "shared_cache", ageMs: 1_000 });
  });

  test("[Q4] a hit that was under way while the clock was set back is not kept", async () => {
    const { clock, source, cache, first } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    source.claim("a", "2");
    await clock.pass(4_000);
    let skewMs = 0;
    const settable = {
      now: () => clock.now() + skewMs,
      after: (delayMs: number, ring: () => void) => clock.after(delayMs, ring),
    };
    const second = routerOf(source, { ...byAge, sharedCache: { cache, coordinator }, clock: settable });
    const finding = second.find(name("a"));
    skewMs = -3_000;
    await clock.runUntil(finding);
    await clock.pass(1_500);
    expect(await clock.runUntil(second.find(name("a")))).toMatchObject({ cell: { id: "2" } });
  });

  test("a clock that was set back makes no pause of the cache longer", async () => {
    const { clock, source, cache, first, second } = pair(byAge);
    source.claim("a", "1");
    cache.fault = "rejects";
    await second.find(name("b"));
    cache.fault = undefined;
    clock.jump(-3_600_000);
    await first.find(name("a"));
    expect(await second.find(name("a"))).toMatchObject({ layer: "shared_cache" });
  });

  test("[Q5] use entries of minutes ago, if the report of each one proves them", async () => {
    const { clock, source, first, second } = pair();
    source.claim("a", "1");
    await second.find(name("other"));
    await first.find(name("a"));
    source.claim("b", "1");
    for (let step = 0; step < 60; step += 1) {
      await clock.pass(1_000);
      await second.find(name("other"));
    }
    expect(await second.find(name("a"))).toMatchObject({ layer: "shared_cache", ageMs: 60_000 });
    source.claim("a", "2");
    await clock.pass(2_001);
    expect(await second.find(name("a"))).toMatchObject({ cell: { id: "2" } });
  });

  test("[Q5] an entry from before the report began is not used", async () => {
    const { clock, source, first, router } = pair();
    source.claim("a", "1");
    await first.find(name("a"));
    await clock.pass(60_000);
    source.claim("a", "2");
    const late = router();
    await late.find(name("other"));
    await clock.pass(100);
    expect(await late.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
  });

  test("[Q2] don't share answers about names on hold", async () => {
    const { source, cache, first, second } = pair(byAge);
    source.claim("a", "1");
    source.hold("a");
    await first.find(name("a"));
    expect(cache.entries.size).toBe(0);
    expect(await second.find(name("a"))).toMatchObject({ layer: "coordinator" });
  });

  test("[Q6] an entry that is older than what was shown is not used", async () => {
    const { source, first, second } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    source.claim("a", "2");
    expect(await second.find(name("A"))).toMatchObject({ cell: { id: "2" } });
    expect(await second.find(name("a"))).toMatchObject({ cell: { id: "2" }, layer: "coordinator" });
  });

  test("[Q9] an entry that is older than the caller's position is not used", async () => {
    const { source, first, second } = pair(byAge);
    await first.find(name("a"));
    source.claim("a", "1");
    const minPositions = new Map([[0, source.position]]);
    expect(await second.find(name("a"), { minPositions })).toMatchObject({ kind: "found" });
  });

  test("[Q8] an entry gets a router through an outage that has not seen the name", async () => {
    const { clock, source, first, second } = pair();
    source.claim("a", "1");
    await first.find(name("a"));
    await first.find(name("b"));
    source.isDown = true;
    await clock.pass(60_000);
    expect(await second.find(name("a"))).toMatchObject({ isStale: true, layer: "shared_cache" });
    expect(await second.find(name("b"))).toMatchObject({ kind: "unavailable" });
  });

  test("of different coordinators share nothing", async () => {
    const { source, cache, first } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    const sharedCache = { cache, coordinator: "https://other.example.com" };
    const other = routerOf(source, { ...byAge, sharedCache });
    expect(await other.find(name("a"))).toMatchObject({ layer: "coordinator" });
  });

  test("have no keys and no hosts of the coordinator in the addresses of entries", async () => {
    const { source, cache, first } = pair(byAge);
    source.claim("a/b?c", "1");
    await first.find(name("a/b?c"));
    expect([...cache.entries.keys()]).toEqual([
      "https://routes.leasehold.invalid/1/https%3A%2F%2Fleasehold.example.com/ROUTES/a%2Fb%3Fc",
    ]);
  });
});

describe("a cache that", () => {
  test.each(["throws", "rejects", "hangs", "garbage"] as const)(
    "case 13: %s changes no answer, and is counted and left alone",
    async (fault) => {
      const { clock, source, cache, failures, second } = pair(byAge);
      source.claim("a", "1");
      cache.fault = fault;
      expect(await clock.runUntil(second.find(name("a")))).toMatchObject({ kind: "found" });
      expect(failures.length).toBeGreaterThan(0);
      expect(failures.every(({ operation }) => operation === "shared_cache")).toBe(true);
      const { gets } = cache;
      await second.find(name("b"));
      expect(cache.gets).toBe(gets);
      cache.fault = undefined;
      await clock.pass(1_000);
      await second.find(name("c"));
      expect(cache.gets).toBe(gets + 1);
    },
  );

  test.each([
    ["without a position", { position: undefined }],
    ["that is not settled", { settled: false }],
    ["with an infinite age", { ageMs: null }],
    ["with a negative age", { ageMs: -5_000 }],
    ["with an address that no router may use", { cell: { id: "1", address: "http://evil.example.com" } }],
    ["without a cell", { cell: null }],
  ])("has an entry %s is not believed", async (_, wrong) => {
    const { source, cache, first, second } = pair(byAge);
    source.claim("a", "1");
    await first.find(name("a"));
    for (const entry of cache.entries.values())
      entry.value = JSON.stringify({ ...(JSON.parse(entry.value) as object), ...wrong });
    expect(await second.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "1" } });
  });
});

test("case 14: answers are the same with the cache and without it, apart from ages and layers", async () => {
  const { clock, source, second, first } = pair();
  const alone = routerOf(source);
  const known = ({ kind, ...answer }: RouteAnswer): unknown =>
    "cell" in answer ? [kind, answer.cell.id, answer.epoch] : kind;
  for (let step = 0; step < 200; step += 1) {
    const value = `n-${(step * 31) % 20}`;
    if (step % 7 === 0) source.claim(value, String(step));
    if (step % 11 === 0) source.drop(`n-${step % 20}`);
    // Nothing that was remembered is provably true after this time.
    await clock.pass(2_001);
    const answers = await Promise.all([first, second, alone].map((router) => router.find(name(value))));
    expect(new Set(answers.map((answer) => JSON.stringify(known(answer)))).size).toBe(1);
  }
});

describe("the Cache API", () => {
  function cacheApi(headers: Record<string, string> = {}) {
    const stored = new Map<string, { text: string; control: string | null }>();
    const deleted: string[] = [];
    const cache: RouteCache = {
      match: async (url) => {
        const entry = stored.get(url);
        return entry && new Response(entry.text, { headers });
      },
      put: async (url, response) => {
        stored.set(url, { text: await response.text(), control: response.headers.get("cache-control") });
      },
      delete: async (url) => {
        deleted.push(url);
        return stored.delete(url);
      },
    };
    return { cache, stored, deleted };
  }

  test("keeps an entry for its life, and never longer than the limit", async () => {
    const { cache, stored } = cacheApi();
    const shared = workersCache({ cache: () => Promise.resolve(cache) });
    await shared.put("https://x.invalid/a", "value", 300_000);
    await shared.put("https://x.invalid/b", "value", 5_500);
    await shared.put("https://x.invalid/c", "value", 999);
    expect([...stored].map(([url, { control }]) => [url.slice(-1), control])).toEqual([
      ["a", "max-age=120"],
      ["b", "max-age=5"],
    ]);
    expect(await shared.get("https://x.invalid/d")).toBeUndefined();
  });

  test("[Q4] a hit is as old as its `Age`, or as the limit if it has none", async () => {
    const aged = cacheApi({ age: "7" });
    const withAge = workersCache({ cache: aged.cache });
    await withAge.put("https://x.invalid/a", "value", 60_000);
    // `Age` has whole seconds, and storing may have taken another one.
    expect(await withAge.get("https://x.invalid/a")).toEqual({ value: "value", ageMs: 9_000 });
    const without = workersCache({ cache: cacheApi().cache, maxAgeS: 30 });
    await without.put("https://x.invalid/a", "value", 60_000);
    expect(await without.get("https://x.invalid/a")).toEqual({ value: "value", ageMs: 31_000 });
  });

  test("names the option that is wrong, and the cache that is missing", async () => {
    expect(() => workersCache({ maxAgeS: 0 })).toThrow("`maxAgeS`");
    await expect(workersCache().get("https://x.invalid/a")).rejects.toThrow("`caches.default`");
  });
});
