/** Lookups by age, the order of answers, and outages, over a coordinator that a test changes step by step. */
import { describe, expect, test, vi } from "vitest";
import type { RouteEvent } from "../../../src/users/router/hooks.ts";
import type { SourceAnswer } from "../../../src/users/router/lookups/source.ts";
import { addressOf, name, routerOf, ScriptedSource, world } from "./scripted-source.ts";

const byAge = { reports: false };

describe("by age", () => {
  test("[Q4] an age counts from when the question was sent, and adds to the age in the answer", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 400;
    source.answerAgeMs = 1_000;
    const first = await clock.runUntil(routes.find(name("a")));
    expect(first).toMatchObject({ kind: "found", layer: "coordinator", ageMs: 1_400 });
    await clock.pass(3_600);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory", ageMs: 5_000 });
    await clock.pass(1);
    expect(await clock.runUntil(routes.find(name("a")))).toMatchObject({ layer: "coordinator" });
  });

  test("[Q4] an answer that HTTP caches made older than the bound is not used", async () => {
    const { source, routes } = world(byAge);
    source.claim("a", "1");
    source.answerAgeMs = 5_001;
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
    source.answerAgeMs = 5_000;
    expect(await routes.find(name("a"))).toMatchObject({ kind: "found", ageMs: 5_000 });
  });

  test("[Q4] an age counts the time that sending takes", async () => {
    const { clock, source, routes } = world(byAge);
    const find = source.find.bind(source);
    const findMany = source.findMany.bind(source);
    source.find = (...asked) => {
      clock.jump(300);
      return find(...asked);
    };
    source.findMany = (...asked) => {
      clock.jump(300);
      return findMany(...asked);
    };
    expect(await routes.find(name("a"))).toMatchObject({ ageMs: 300 });
    const answers = await routes.findMany([name("b"), name("c")]);
    expect(answers).toMatchObject([{ ageMs: 300 }, { ageMs: 300 }]);
  });

  test("[Q5] an entry is used up to its largest age, and not beyond", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.claim("a", "2");
    await clock.pass(5_000);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory", cell: { id: "1" }, ageMs: 5_000 });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" }, ageMs: 0 });
    expect(source.count("find")).toBe(2);
  });

  test("[Q2] an answer about a name on hold is used once", async () => {
    const { source, routes } = world(byAge);
    source.claim("a", "1");
    source.hold("a");
    expect(await routes.find(name("a"))).toMatchObject({ settled: false, layer: "coordinator" });
    expect(await routes.find(name("a"))).toMatchObject({ settled: false, layer: "coordinator" });
    source.release("a");
    await routes.find(name("a"));
    expect(await routes.find(name("a"))).toMatchObject({ settled: true, layer: "memory" });
    expect(source.count("find")).toBe(3);
  });

  test("[Q7] a negative answer lives for a second", async () => {
    const { clock, source, routes } = world(byAge);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "none", position: 100 });
    source.claim("a", "1");
    await clock.pass(1_000);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "none", layer: "memory" });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "found" });
  });

  test("with a largest age of 0, every lookup asks", async () => {
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 0 });
    source.claim("a", "1");
    await routes.find(name("a"));
    await clock.pass(1);
    await routes.find(name("a"));
    expect(source.count("find")).toBe(2);
  });

  test("no report is asked for", async () => {
    const { source, routes } = world(byAge);
    await routes.find(name("a"));
    expect(source.asked).toEqual(["find a"]);
  });

  test("a clock that was set back makes the router forget", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.claim("a", "2");
    clock.jump(-3_600_000);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
  });

  test("an answer that was under way while the clock was set back is used once", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 100;
    const finding = routes.find(name("a"));
    await clock.turn();
    clock.jump(-1_000);
    const other = routes.find(name("b"));
    const answer = await clock.runUntil(finding);
    expect(answer).toMatchObject({ kind: "found", settled: false });
    await clock.runUntil(other);
    await clock.runUntil(routes.find(name("a")));
    expect(source.asked).toEqual(["find a", "find b", "find a"]);
  });
});

describe("calls at the same time", () => {
  test("share a question", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 50;
    const answers = await clock.runUntil(Promise.all([1, 2, 3].map(() => routes.find(name("a")))));
    expect(answers.map(({ kind }) => kind)).toEqual(["found", "found", "found"]);
    expect(source.count("find")).toBe(1);
  });

  test("[Q4] don't share an answer that is too old for the later one", async () => {
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 30 });
    source.claim("a", "1");
    source.delayMs = 50;
    const first = routes.find(name("a"));
    await clock.pass(10);
    source.claim("a", "2");
    const [one, two] = await clock.runUntil(Promise.all([first, routes.find(name("a"))]));
    expect(one).toMatchObject({ cell: { id: "1" } });
    expect(two).toMatchObject({ cell: { id: "2" } });
    expect(source.count("find")).toBe(2);
  });

  test("[Q2] don't share an answer about a name on hold with a later call", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.hold("a");
    source.delayMs = 50;
    const first = routes.find(name("a"));
    await clock.pass(10);
    source.drop("a");
    const [one, two] = await clock.runUntil(Promise.all([first, routes.find(name("a"))]));
    expect(one).toMatchObject({ kind: "found", settled: false });
    expect(two).toMatchObject({ kind: "none", settled: true });
  });

  test("[Q9] don't share a question that promises less", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 50;
    const plain = routes.find(name("a"));
    await clock.pass(10);
    source.claim("a", "2");
    const minPositions = new Map([[0, source.position]]);
    const [one, two] = await clock.runUntil(Promise.all([plain, routes.find(name("a"), { minPositions })]));
    expect(one).toMatchObject({ kind: "found" });
    expect(two).toMatchObject({ kind: "found", cell: { id: "2" }, position: source.position });
  });

  test("a call that is cancelled leaves the others alone", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 50;
    const controller = new AbortController();
    const cancelled = routes.find(name("a"), { signal: controller.signal });
    const other = routes.find(name("a"));
    controller.abort(new Error("the client went away"));
    await expect(cancelled).rejects.toThrow("the client went away");
    expect(await clock.runUntil(other)).toMatchObject({ kind: "found" });
    await expect(routes.find(name("a"), { signal: controller.signal })).rejects.toThrow("went away");
  });

  test("a question that never ends is asked again by the next call", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.isSilent = true;
    const first = routes.find(name("a"));
    await clock.pass(1_000);
    const joined = routes.find(name("a"));
    source.isSilent = false;
    expect(await clock.runUntil(joined)).toMatchObject({ kind: "found" });
    expect(await first).toMatchObject({ kind: "unavailable" });
    expect(source.count("find")).toBe(2);
  });
});

describe("the order of answers", () => {
  const answer = (cell: string, epoch: number, position: number) =>
    ({
      kind: "found",
      cell: { id: cell, address: addressOf(cell) },
      epoch,
      key: "a".padEnd(16, "0"),
      shard: 0,
      position,
      settled: true,
      ageMs: 0,
    }) as const;

  test("[Q6] an older answer is thrown away, asked for again with a position, and counted", async () => {
    let backwards = 0;
    const { clock, source, routes } = world(byAge, { onBackwards: () => (backwards += 1) });
    source.next.push(answer("2", 12, 200), answer("1", 11, 190), answer("2", 12, 205));
    await routes.find(name("a"));
    await clock.pass(5_001);
    expect(await routes.find(name("a"))).toMatchObject({ epoch: 12, position: 205 });
    expect(backwards).toBe(1);
    expect(source.asked).toEqual(["find a", "find a", "find a 0,200"]);
  });

  test("[Q6] a coordinator that stays behind makes the name unavailable", async () => {
    const { clock, source, routes } = world(byAge);
    source.next.push(answer("2", 12, 200), answer("1", 11, 190), answer("1", 11, 190));
    await routes.find(name("a"));
    await clock.pass(5_001);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable", retryAfterMs: 1_000 });
  });

  test("[Q6] case 6: a smaller epoch is refused at any position, also after a negative answer", async () => {
    const { clock, source, routes } = world(byAge);
    const { cell: _, epoch: __, ...read } = answer("2", 12, 210);
    source.next.push(
      answer("2", 12, 200),
      { ...read, kind: "none" },
      answer("1", 11, 220),
      answer("1", 11, 221),
    );
    expect(await routes.find(name("a"))).toMatchObject({ epoch: 12 });
    await clock.pass(5_001);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "none" });
    await clock.pass(5_001);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q6] the positions of all spellings of a name count together", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.claim("a", "2");
    expect(await routes.find(name("A"))).toMatchObject({ cell: { id: "2" } });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "2" }, layer: "coordinator" });
  });

  test("[Q6] case 6: answers that arrive in the wrong order are shown in the right one", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.delayMs = 100;
    const slow = routes.find(name("a"));
    source.claim("a", "2");
    source.delayMs = 10;
    const shown: unknown[] = [];
    const watch = async (finding: ReturnType<typeof routes.find>): Promise<void> => {
      const each = await finding;
      shown.push(each.kind === "found" ? each.cell.id : each.kind);
    };
    await clock.runUntil(Promise.all([watch(slow), watch(routes.find(name("A")))]));
    expect(shown).toEqual(["2", "2"]);
  });

  test("[Q6] holds when there is no memory for what was shown", async () => {
    const { clock, source, routes } = world({ ...byAge, memoryBytes: 4_096 });
    source.next.push(answer("2", 12, 200));
    await routes.find(name("a"));
    // Other names take all the memory for floors.
    source.position = 300;
    for (let at = 0; at < 50; at += 1) await routes.find(name(`other-${at}`));
    await clock.pass(5_001);
    source.next.push(answer("2", 12, 190), answer("2", 12, 190));
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q9] an entry that is older than the caller's position is not used", async () => {
    const { source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.claim("a", "2");
    const minPositions = new Map([[0, source.position]]);
    expect(await routes.find(name("a"), { minPositions })).toMatchObject({
      cell: { id: "2" },
      layer: "coordinator",
    });
    expect(await routes.find(name("a"), { minPositions })).toMatchObject({ layer: "memory" });
  });

  test("[Q9] a position that the shard has not reached is unavailable, and hurts nobody else", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    const minPositions = new Map([
      [0, 1_000],
      [77, 5],
    ]);
    await routes.find(name("a"));
    await clock.pass(5_001);
    for (let call = 0; call < 10; call += 1)
      expect(await clock.runUntil(routes.find(name("a"), { minPositions }))).toMatchObject({
        kind: "unavailable",
      });
    await clock.pass(5_001);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator" });
    expect(await routes.find(name("b"))).toMatchObject({ kind: "none" });
    expect(source.asked.filter((each) => each.includes("77"))).toEqual([]);
  });

  test("[Q9] an outage is noticed by calls with positions", async () => {
    const { source, routes } = world(byAge);
    await routes.find(name("b"));
    const minPositions = new Map([[0, 1]]);
    for (let call = 0; call < 20; call += 1) {
      source.next.push({ kind: "failed", detail: "status 503", status: 503 });
      await routes.find(name("a"), { minPositions });
    }
    expect(source.count("find a")).toBe(5);
  });

  test("[Q9] the end of an outage is noticed by a call with a position that is too large", async () => {
    const { clock, source, routes } = world(byAge);
    await routes.find(name("known"));
    source.isDown = true;
    for (let call = 0; call < 5; call += 1) await routes.find(name("a"));
    source.isDown = false;
    await clock.pass(1_000);
    const minPositions = new Map([[0, 1_000]]);
    expect(await routes.find(name("b"), { minPositions })).toMatchObject({ kind: "unavailable" });
    expect(await routes.find(name("a"))).toMatchObject({ kind: "none", layer: "coordinator" });
  });

  test("[Q9] case 3: a new name is found at once by a router that remembers its absence", async () => {
    const { source, routes } = world();
    await routes.find(name("a"));
    source.claim("a", "1");
    const minPositions = new Map([[0, source.position]]);
    expect(await routes.find(name("a"), { minPositions })).toMatchObject({
      kind: "found",
      cell: { id: "1" },
    });
  });
});

describe("a wrong cell", () => {
  test("is forgotten, and the coordinator is asked with the position of the answer", async () => {
    let misdirected = 0;
    const { source, routes } = world(byAge, { onMisdirected: () => (misdirected += 1) });
    source.claim("a", "1");
    const wrong = await routes.find(name("a"));
    if (wrong.kind !== "found") throw new Error("not found");
    source.claim("a", "2");
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ cell: { id: "2" }, layer: "coordinator" });
    expect(source.asked.at(-1)).toBe(`find a 0,${wrong.position}`);
    expect(misdirected).toBe(1);
    // A request that was on its way to the same wrong cell uses what is known by now.
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ cell: { id: "2" }, layer: "memory" });
  });

  test("[Q8] doesn't come back during an outage", async () => {
    const { source, routes } = world(byAge);
    source.claim("a", "1");
    const wrong = await routes.find(name("a"));
    if (wrong.kind !== "found") throw new Error("not found");
    source.isDown = true;
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ kind: "unavailable" });
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q8] doesn't come back if another call has read it again", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    const wrong = await routes.find(name("a"));
    if (wrong.kind !== "found") throw new Error("not found");
    source.isDown = true;
    source.delayMs = 100;
    const refreshing = routes.refresh(name("a"), wrong);
    await clock.turn();
    source.isDown = false;
    source.delayMs = 0;
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "1" } });
    expect(await clock.runUntil(refreshing)).toMatchObject({ kind: "unavailable" });
  });
});

describe("an answer that a cell has refused", () => {
  /** A router that was told about a wrong cell. The coordinator answers as before, or is down. */
  async function refused(isDown: boolean, values: readonly string[] = ["a"]) {
    const made = world(byAge);
    const { clock, source, routes } = made;
    source.claim("a", "1");
    for (const value of values) await routes.find(name(value));
    const wrong = await routes.find(name("a"));
    if (wrong.kind !== "found") throw new Error("not found");
    await clock.pass(10);
    source.isDown = isDown;
    return { ...made, wrong };
  }

  test("[Q8] doesn't come back under another spelling, also in an outage", async () => {
    const { routes, wrong } = await refused(true, ["A", "a"]);
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ kind: "unavailable" });
    expect(await routes.find(name("A"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q8] doesn't come back from a question that was sent before", async () => {
    const { clock, source, routes, wrong } = await refused(false);
    await clock.pass(5_000);
    source.delayMs = 100;
    const slow = routes.find(name("a"));
    await clock.pass(10);
    source.isDown = true;
    source.delayMs = 0;
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ kind: "unavailable" });
    expect(await clock.runUntil(slow)).toMatchObject({ kind: "unavailable" });
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("is replaced by one question of all that were refused", async () => {
    const { clock, source, routes, wrong } = await refused(false);
    source.claim("a", "2");
    source.delayMs = 100;
    const first = routes.refresh(name("a"), wrong);
    await clock.pass(10);
    const both = await clock.runUntil(Promise.all([first, routes.refresh(name("a"), wrong)]));
    expect(both).toMatchObject([{ cell: { id: "2" } }, { cell: { id: "2" } }]);
    expect(source.count("find a")).toBe(2);
  });

  test("is replaced by a newer one, even if HTTP caches give it an age", async () => {
    const { source, routes, wrong } = await refused(false);
    source.claim("a", "2");
    source.answerAgeMs = 1_000;
    expect(await routes.refresh(name("a"), wrong)).toMatchObject({ cell: { id: "2" } });
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "2" }, layer: "memory" });
  });
});

describe("an outage", () => {
  test("[Q8] case 8: routes what was found up to the grace period, and marks it", async () => {
    const told: RouteEvent[] = [];
    const { clock, source, routes } = world(byAge, { onRoute: (event) => told.push(event) });
    source.claim("a", "1");
    await routes.find(name("a"));
    source.isDown = true;
    await clock.pass(5_000);
    expect(await routes.find(name("a"))).toMatchObject({ isStale: false });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ isStale: true, cell: { id: "1" }, ageMs: 5_001 });
    expect(told.at(-1)).toEqual({ result: "stale", layer: "memory", ageMs: 5_001 });
    await clock.pass(594_999);
    expect(await routes.find(name("a"))).toMatchObject({ isStale: true, ageMs: 600_000 });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
    source.isDown = false;
    await clock.pass(1_000);
    expect(await routes.find(name("a"))).toMatchObject({ isStale: false, layer: "coordinator" });
  });

  test("[Q8] case 8: never answers that a name doesn't exist, and nothing about names on hold", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("b", "1");
    source.hold("b");
    await routes.find(name("a"));
    await routes.find(name("b"));
    source.isDown = true;
    await clock.pass(1_001);
    for (const value of ["a", "b", "never-seen"])
      expect(await routes.find(name(value))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q8] case 8: without a grace period, names are unavailable once they are too old", async () => {
    const { clock, source, routes } = world({ ...byAge, graceMs: 0 });
    source.claim("a", "1");
    await routes.find(name("a"));
    source.isDown = true;
    await clock.pass(5_000);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "found", isStale: false });
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
  });

  test("[Q8] doesn't cost a question for every request", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.isDown = true;
    await clock.pass(5_001);
    const before = source.count("find");
    for (let call = 0; call < 400; call += 1) {
      expect(await routes.find(name(call % 2 === 0 ? "a" : `new-${call}`))).toMatchObject(
        call % 2 === 0 ? { isStale: true } : { kind: "unavailable" },
      );
      await clock.pass(25);
    }
    // 10 s: the failures until questions pause, and then about one each second.
    expect(source.count("find") - before).toBeLessThan(25);
    expect(source.count("find") - before).toBeGreaterThan(8);
  });

  test("[Q8] stale answers don't wait for a coordinator that hangs", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.isDown = true;
    await clock.pass(5_001);
    for (let call = 0; call < 5; call += 1) await routes.find(name(`new-${call}`));
    source.isDown = false;
    source.isSilent = true;
    await clock.pass(1_000);
    // No time passes here: with a wait, the test would hang.
    expect(await routes.find(name("a"))).toMatchObject({ isStale: true });
  });

  test("questions that wait are limited", async () => {
    const { clock, source, routes } = world(byAge);
    source.isSilent = true;
    const waiting = Array.from({ length: 1_030 }, (_, at) => routes.find(name(`n-${at}`)));
    const answers = await clock.runUntil(Promise.all(waiting));
    expect(source.count("find")).toBe(1_024);
    expect(answers.every(({ kind }) => kind === "unavailable")).toBe(true);
  });
});

describe("what cannot be asked", () => {
  test.each([
    ["an empty type", { type: "", value: "a" }, "bucket_type"],
    ["a type that is too long", { type: "T".repeat(300), value: "a" }, "bucket_type"],
    ["half of a surrogate pair", { type: "ROUTES", value: "\ud800" }, "value"],
    ["a value of 10 kB", { type: "ROUTES", value: "a".repeat(10_240) }, "value"],
    ["a value of 1,025 bytes", { type: "ROUTES", value: `${"ä".repeat(512)}a` }, "value"],
  ])("%s is no name", async (_, given, field) => {
    const { source, routes } = world(byAge);
    expect(await routes.find(given)).toMatchObject({ kind: "invalid", field });
    expect(source.asked).toEqual([]);
  });

  test("what the coordinator refuses is passed on", async () => {
    const { source, routes } = world(byAge);
    source.next.push({ kind: "invalid", detail: "no such type", field: "bucket_type" });
    expect(await routes.find(name("a"))).toEqual({
      kind: "invalid",
      detail: "no such type",
      field: "bucket_type",
    });
  });

  test.each([
    "https://cell.example.com/path",
    "http://cell.example.com",
    "ftp://cell.example.com",
    "",
    "x y",
  ])("a cell at %j makes the name unavailable", async (address) => {
    const refused: string[] = [];
    const { source, routes } = world(byAge, { onUnusableAddress: ({ cell }) => refused.push(cell) });
    const read = { key: "a".padEnd(16, "0"), shard: 0, position: 101, settled: true, ageMs: 0 };
    source.next.push({ kind: "found", cell: { id: "7", address }, epoch: 1, ...read });
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
    expect(refused).toEqual(["7"]);
  });

  test("a closed router answers that it is unavailable", async () => {
    const { source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    routes.close();
    expect(await routes.find(name("a"))).toMatchObject({ kind: "unavailable" });
    await expect(routes.cells()).rejects.toThrow("could not be read");
    expect(source.asked.at(-1)).toBe("close");
  });
});

describe("many names", () => {
  test("are asked for together, each once", async () => {
    const { source, routes } = world(byAge);
    for (const value of ["a", "b", "c"]) source.claim(value, "1");
    await routes.find(name("a"));
    const answers = await routes.findMany(["a", "b", "d", "b"].map(name));
    expect(answers.map(({ kind }) => kind)).toEqual(["found", "found", "none", "found"]);
    expect(source.asked).toEqual(["find a", "findMany b d"]);
    expect(await routes.find(name("b"))).toMatchObject({ layer: "memory" });
  });

  test("one that is left is asked for alone", async () => {
    const { source, routes } = world(byAge);
    await routes.findMany([name("a")]);
    expect(source.asked).toEqual(["find a"]);
    expect(await routes.findMany([])).toEqual([]);
  });

  test("[Q5] a remembered answer that got too old meanwhile is asked for again", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    await clock.pass(4_900);
    source.claim("a", "2");
    source.delayMs = 200;
    const [answer] = await clock.runUntil(routes.findMany([name("a"), name("b")]));
    expect(answer).toMatchObject({ cell: { id: "2" } });
  });

  test("[Q5] an answer to a question from before the call also gets too old meanwhile", async () => {
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 500 });
    source.claim("a", "1");
    source.delayMs = 400;
    const earlier = routes.find(name("a"));
    await clock.pass(100);
    source.claim("a", "2");
    source.delayMs = 1_000;
    const [answer] = await clock.runUntil(routes.findMany([name("a"), name("b")]));
    expect(answer).toMatchObject({ cell: { id: "2" } });
    expect(await earlier).toMatchObject({ cell: { id: "1" } });
  });

  test("[Q4] the age of an answer counts the wait for the others", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    await clock.pass(1_000);
    source.delayMs = 400;
    const [answer] = await clock.runUntil(routes.findMany([name("a"), name("b")]));
    expect(answer).toMatchObject({ layer: "memory", ageMs: 1_400 });
  });

  test("[Q6] an answer is not given after a newer one was shown meanwhile", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.delayMs = 400;
    const batch = routes.findMany([name("a"), name("b")]);
    source.claim("a", "2");
    source.delayMs = 0;
    const newer = await routes.find(name("a"), { minPositions: new Map([[0, source.position]]) });
    expect(newer).toMatchObject({ cell: { id: "2" } });
    const [answer] = await clock.runUntil(batch);
    expect(answer).toMatchObject({ cell: { id: "2" } });
  });

  test("[Q8] fail together, and fall back one by one", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    await clock.pass(5_001);
    source.isDown = true;
    const answers = await routes.findMany([name("a"), name("b")]);
    expect(answers).toMatchObject([{ kind: "found", isStale: true }, { kind: "unavailable" }]);
  });

  const onShard1: SourceAnswer = {
    kind: "found",
    cell: { id: "2", address: addressOf("2") },
    epoch: 3,
    key: "b".repeat(16),
    shard: 1,
    position: 7,
    settled: true,
    ageMs: 0,
  };

  test("[Q8] one that fails alone counts for its shard, and the others are answered", async () => {
    const failures: unknown[] = [];
    const hooks = { onFailure: (event: unknown) => failures.push(event) };
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 0 }, hooks);
    source.claim("a", "1");
    source.next.push(onShard1);
    await routes.find(name("b"));
    for (let times = 0; times < 3; times += 1) {
      await clock.pass(1);
      source.next.push({ kind: "failed", detail: "shard 1 UNAVAILABLE", shard: 1 });
      expect(await routes.findMany([name("b"), name("a")])).toMatchObject([
        { kind: "found", isStale: true, cell: { id: "2" } },
        { kind: "found", isStale: false, cell: { id: "1" } },
      ]);
    }
    expect(failures).toEqual(
      Array.from({ length: 3 }, () => ({ operation: "route", detail: "shard 1 UNAVAILABLE" })),
    );
    source.asked.length = 0;
    await clock.pass(1);
    const answers = await routes.findMany(["b", "a", "c"].map(name));
    expect(answers).toMatchObject([{ isStale: true }, { isStale: false }, { kind: "none" }]);
    expect(source.asked).toEqual(["findMany a c"]);
    await clock.pass(250);
    source.next.push(onShard1);
    await routes.find(name("b"));
    expect(await routes.find(name("b"))).toMatchObject({ isStale: false, layer: "memory", shard: 1 });
  });

  test("[Q8] one that is unavailable says when to ask again", async () => {
    const { source, routes } = world(byAge);
    source.next.push({ kind: "failed", detail: "shard 1 UNAVAILABLE", shard: 1, retryAfterMs: 3_000 });
    expect(await routes.findMany([name("b"), name("a")])).toMatchObject([
      { kind: "unavailable", retryAfterMs: 3_000 },
      { kind: "none" },
    ]);
  });

  test("[Q9] one whose shard is behind doesn't count as a failure of the shard", async () => {
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 0 });
    source.next.push(onShard1);
    await routes.find(name("b"));
    for (let times = 0; times < 6; times += 1) {
      await clock.pass(1);
      source.next.push({ kind: "failed", detail: "shard 1 UNAVAILABLE", shard: 1, isBehind: true });
      await routes.findMany([name("b"), name("a")]);
    }
    source.asked.length = 0;
    await clock.pass(1);
    await routes.findMany([name("b"), name("a")]);
    expect(source.asked).toEqual(["findMany b a"]);
  });

  test("[Q8] a lost message counts for every shard that it was for", async () => {
    const { clock, source, routes } = world({ ...byAge, maxAgeMs: 0 });
    source.claim("a", "1");
    source.next.push(onShard1);
    await routes.find(name("b"));
    await routes.find(name("a"));
    source.isDown = true;
    for (let times = 0; times < 3; times += 1) {
      await clock.pass(1);
      await routes.findMany([name("a"), name("b")]);
    }
    source.asked.length = 0;
    expect(await routes.find(name("b"))).toMatchObject({ isStale: true });
    expect(await routes.find(name("a"))).toMatchObject({ isStale: true });
    expect(source.asked).toEqual([]);
  });

  test("[Q8] count as one failure, so one lost message doesn't stop all questions", async () => {
    const failures: unknown[] = [];
    const { source, routes } = world(byAge, { onFailure: (event) => failures.push(event) });
    source.isDown = true;
    await routes.findMany(["a", "b", "c", "d", "e", "f"].map(name));
    source.isDown = false;
    expect(failures).toEqual([{ operation: "route", detail: "down" }]);
    expect(await routes.find(name("a"))).toMatchObject({ kind: "none", layer: "coordinator" });
  });
});

describe("the list of cells", () => {
  test("is refreshed after 15 s, and used during an outage", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    expect([...(await routes.cells()).keys()]).toEqual(["1"]);
    source.claim("b", "2");
    await clock.pass(15_000);
    await routes.cells();
    expect(source.count("cells")).toBe(1);
    await clock.pass(15_001);
    expect([...(await routes.cells()).keys()]).toEqual(["1", "2"]);
    source.isDown = true;
    await clock.pass(600_000);
    expect([...(await routes.cells()).keys()]).toEqual(["1", "2"]);
    await clock.pass(1);
    await expect(routes.cells()).rejects.toMatchObject({
      name: "RoutesUnavailableError",
      retryAfterMs: 1_000,
    });
  });

  test("is read again before it is too old to be used", async () => {
    const { clock, source, routes } = world({ ...byAge, graceMs: 0 });
    source.claim("a", "1");
    await routes.cells();
    await clock.pass(15_001);
    source.delayMs = 100;
    expect([...(await clock.runUntil(routes.cells())).keys()]).toEqual(["1"]);
  });

  test("is read at once after a failed connection, so a remembered name has the new address", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.find(name("a"));
    source.addresses.set("1", "https://moved.example.com");
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ cell: { address: addressOf("1") } });
    const works: Promise<unknown>[] = [];
    routes.refreshCells({ waitUntil: (work) => void works.push(work) });
    expect(works).toHaveLength(1);
    await Promise.all(works);
    expect(await routes.find(name("a"))).toMatchObject({
      cell: { id: "1", address: "https://moved.example.com" },
      layer: "memory",
    });
  });

  test("is read at most once a second while connections fail, and not after the end", async () => {
    const { clock, source, routes } = world(byAge);
    for (let ms = 0; ms < 3_000; ms += 100) {
      routes.refreshCells();
      // The coordinator's failures don't make it more.
      source.isDown = ms > 1_000;
      await clock.pass(100);
    }
    expect(source.count("cells")).toBe(3);
    routes.close();
    await clock.pass(1_000);
    routes.refreshCells();
    expect(source.count("cells")).toBe(3);
  });

  test("[Q8] is at most 15 s old if it must be new", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.cells();
    source.claim("b", "2");
    await clock.pass(15_001);
    source.delayMs = 100;
    expect([...(await clock.runUntil(routes.cells({ mustBeNew: true }))).keys()]).toEqual(["1", "2"]);
    source.delayMs = 0;
    source.isDown = true;
    await clock.pass(15_001);
    await expect(routes.cells({ mustBeNew: true })).rejects.toThrow("the list of cells could not be read");
    await expect(routes.cells({ mustBeNew: true })).rejects.toThrow("the list of cells could not be read");
    expect(source.count("cells")).toBe(3);
    expect([...(await routes.cells()).keys()]).toEqual(["1", "2"]);
  });

  test("is never empty because of an outage", async () => {
    const { source, routes } = world(byAge);
    source.isDown = true;
    await expect(routes.cells()).rejects.toThrow("the list of cells could not be read");
  });

  test("[Q8] proves no absence if the coordinator cannot read its directory", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    source.directoryAgeMs = 30_001;
    expect([...(await routes.cells()).keys()]).toEqual(["1"]);
    await clock.pass(15_000);
    await expect(routes.cells({ mustBeNew: true })).rejects.toThrow("the list of cells could not be read");
    source.directoryAgeMs = 30_000;
    await clock.pass(1);
    expect([...(await routes.cells({ mustBeNew: true })).keys()]).toEqual(["1"]);
    expect(source.count("cells")).toBe(2);
  });

  test("is not replaced by an older one, which is not asked for again at once", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    await routes.cells();
    source.claim("b", "2");
    source.directoryAgeMs = 60_000;
    await clock.pass(30_001);
    expect([...(await routes.cells()).keys()]).toEqual(["1"]);
    await routes.cells();
    expect(source.count("cells")).toBe(2);
  });

  test("[Q4] a list that was under way while the clock was set back is not kept", async () => {
    const { clock, source, routes } = world(byAge);
    source.claim("a", "1");
    const list = await source.cells();
    const sent = Promise.withResolvers<typeof list>();
    const cells = vi.spyOn(source, "cells").mockReturnValueOnce(sent.promise);
    const reading = routes.cells();
    clock.jump(-3_600_000);
    await routes.find(name("a"));
    sent.resolve(list);
    await expect(reading).rejects.toThrow("the list of cells could not be read");
    source.addresses.set("1", "https://moved.example.com");
    expect((await routes.cells()).get("1")?.address).toBe("https://moved.example.com");
    expect(cells).toHaveBeenCalledTimes(2);
  });
});

describe("memory", () => {
  test("is bounded, whatever names are asked for", async () => {
    const clock = world().clock;
    const source = new ScriptedSource(clock);
    const routes = routerOf(source, { memoryBytes: 65_536 });
    const long = "x".repeat(1_000);
    for (let at = 0; at < 500; at += 1) {
      source.claim(`${at}-${long}`, String(at));
      await routes.find(name(`${at}-${long}`));
      expect(routes.bytes).toBeLessThanOrEqual(65_536);
    }
    expect(await routes.find(name(`499-${long}`))).toMatchObject({ layer: "memory" });
    expect(await routes.find(name(`0-${long}`))).toMatchObject({ layer: "coordinator" });
  });
});
