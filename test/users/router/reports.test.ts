/** Entries that live for minutes, because reports say what has changed. */
import { describe, expect, test } from "vitest";
import type { FailureEvent, ReportEvent } from "../../../src/users/router/hooks.ts";
import { name, world } from "./scripted-source.ts";

/** A router that has read a report, and then the name. */
async function followed(options: Parameters<typeof world>[0] = {}) {
  const reports: ReportEvent[] = [];
  const failures: FailureEvent[] = [];
  const made = world(options, {
    onReport: (event) => reports.push(event),
    onFailure: (event) => failures.push(event),
  });
  const { clock, source, routes } = made;
  source.claim("a", "1");
  // The first lookup starts the report, in the background.
  await routes.find(name("other"));
  await clock.pass(1_000);
  await routes.find(name("a"));
  return { ...made, reports, failures };
}

describe("with reports", () => {
  test("[Q5] an entry is used for minutes, while its key is not listed", async () => {
    const { clock, source, routes } = await followed();
    const before = source.count("find a");
    for (let second = 0; second < 298; second += 1) {
      await clock.pass(1_000);
      source.claim(`name-${second}`, "9");
      expect(await routes.find(name("a"))).toMatchObject({ layer: "memory", cell: { id: "1" } });
    }
    expect(source.count("find a")).toBe(before);
    // Each second another report, and never more than that.
    expect(source.count("report")).toBeLessThanOrEqual(300);
    await clock.pass(3_000);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator" });
  });

  test("[Q5] an entry is not used for longer than W, also with a fresh report", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(299_000);
    await routes.find(name("b"));
    await clock.pass(1_001);
    expect(await routes.find(name("b"))).toMatchObject({ layer: "memory" });
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator" });
    expect(source.count("find a")).toBe(2);
  });

  test("[Q5] an entry that is newer than the report is not proved by it", async () => {
    const { clock, source, routes } = await followed({ maxAgeMs: 0 });
    source.claim("b", "1");
    await routes.find(name("b"));
    await clock.pass(1);
    source.nextReports.push({ kind: "failed", detail: "no" });
    expect(await routes.find(name("b"))).toMatchObject({ layer: "coordinator" });
    await clock.pass(1_000);
    expect(await routes.find(name("b"))).toMatchObject({ layer: "memory" });
  });

  test("[Q5] an entry is not used once its key is listed", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(10_000);
    source.claim("a", "2");
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory", cell: { id: "2" } });
  });

  test("[Q5] no answer is older than the bound, however long entries live", async () => {
    const { clock, source, routes } = await followed();
    const changes: { cell: string; atMs: number }[] = [{ cell: "1", atMs: -Infinity }];
    for (let step = 0; step < 400; step += 1) {
      await clock.pass(100 + ((step * 7_919) % 400));
      if (step % 9 === 0) {
        source.claim("a", String(step));
        changes.push({ cell: String(step), atMs: clock.now() });
      }
      const answer = await routes.find(name("a"));
      if (answer.kind !== "found") throw new Error(answer.kind);
      const at = changes.findIndex(({ cell }) => cell === answer.cell.id);
      const replacedAtMs = changes[at + 1]?.atMs ?? Infinity;
      expect(clock.now() - replacedAtMs).toBeLessThanOrEqual(2_000);
    }
  });

  test("[Q5] case 2: an entry read before a hold is not used, if stored after the report too", async () => {
    const { clock, source, routes } = await followed();
    source.delayMs = 300;
    const reading = routes.find(name("b"));
    await clock.pass(10);
    source.claim("b", "2");
    await clock.pass(40);
    // The report arrives first.
    source.delayMs = 10;
    await clock.runUntil(routes.find(name("a")));
    expect(await clock.runUntil(reading)).toMatchObject({ kind: "none" });
    await clock.pass(2_001);
    expect(await clock.runUntil(routes.find(name("b")))).toMatchObject({ kind: "found", cell: { id: "2" } });
  });

  test("[Q5] a report proves nothing for entries from before it began", async () => {
    const { clock, source, routes } = world();
    source.claim("a", "1");
    source.delayMs = 100;
    const reading = clock.runUntil(routes.find(name("a")));
    await reading;
    // The name changes before the first report is read, which is on its way since the lookup.
    source.claim("a", "2");
    await clock.pass(2_001);
    expect(await clock.runUntil(routes.find(name("a")))).toMatchObject({ cell: { id: "2" } });
  });

  test("[Q5] without a fresh report, entries are used up to the bound", async () => {
    const { clock, source, routes, failures } = await followed();
    source.nextReports.push(
      ...Array.from({ length: 100 }, () => ({ kind: "failed", detail: "no" }) as const),
    );
    await clock.pass(2_000);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory" });
    source.claim("a", "2");
    await clock.pass(1);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
    expect(failures.at(-1)).toEqual({ operation: "report", detail: "no" });
  });

  test("[Q4] a report's age counts from when it was asked for, and adds to the age in it", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(5_000);
    source.reportAgeMs = 1_900;
    source.delayMs = 50;
    // The report is 1,950 ms old when it arrives.
    expect(await clock.runUntil(routes.find(name("a")))).toMatchObject({ layer: "memory" });
    await clock.pass(50);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory" });
    await clock.pass(1);
    expect(await clock.runUntil(routes.find(name("a")))).toMatchObject({ layer: "coordinator" });
  });

  test("[Q7] a negative answer lives as long as reports prove it", async () => {
    const { clock, source, routes } = await followed();
    await routes.find(name("b"));
    const before = source.count("find b");
    for (let second = 0; second < 60; second += 1) {
      await clock.pass(1_000);
      expect(await routes.find(name("b"))).toMatchObject({ kind: "none", layer: "memory" });
    }
    expect(source.count("find b")).toBe(before);
    source.claim("b", "2");
    await clock.pass(2_001);
    expect(await routes.find(name("b"))).toMatchObject({ kind: "found" });
  });

  test("[Q6] all spellings of a name are listed together", async () => {
    const { clock, source, routes } = await followed();
    await routes.find(name("A"));
    await clock.pass(10_000);
    source.claim("a", "2");
    for (const value of ["A", "a"])
      expect(await routes.find(name(value))).toMatchObject({ cell: { id: "2" } });
  });

  test("a fresh entry never waits for a report", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(1_500);
    source.isSilent = true;
    // No time passes: with a wait, the test would hang.
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory" });
    expect(source.asked.at(-1)).toMatch(/^report 0 after/);
  });

  test("a report that never comes holds nobody up for long, and is asked for again", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(10_000);
    source.isSilent = true;
    const before = source.count("report");
    const waiting = routes.find(name("a"));
    await clock.pass(100);
    source.isSilent = false;
    expect(await clock.runUntil(waiting)).toMatchObject({ layer: "coordinator" });
    await clock.pass(5_000);
    await routes.find(name("a"));
    expect(source.count("report") - before).toBeGreaterThanOrEqual(2);
  });

  test("[Q5] the answer of a report that was given up changes nothing", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(10_000);
    source.delayMs = 6_000;
    const late = routes.find(name("a"));
    await clock.pass(4_500);
    source.claim("a", "2");
    source.delayMs = 0;
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "2" } });
    await clock.pass(3_000);
    await late;
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "2" }, layer: "memory" });
    await clock.pass(1_000);
    await routes.find(name("a"));
    const reports = source.asked.filter((each) => each.startsWith("report"));
    expect(reports.at(-1)).toBe(`report 0 after ${source.position}`);
  });
});

describe("at most one report per second and shard", () => {
  test("case 9: on average, however many names are looked up", async () => {
    const { clock, source, routes } = await followed();
    const before = source.count("report");
    for (let step = 0; step < 1_000; step += 1) {
      await clock.pass(10);
      await Promise.all([routes.find(name("a")), routes.find(name(`n-${step % 50}`))]);
    }
    expect(source.count("report") - before).toBeLessThanOrEqual(10);
    expect(source.count("report") - before).toBeGreaterThanOrEqual(5);
  });

  test("also while reports fail", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(60_000);
    source.isDown = true;
    const before = source.count("report");
    for (let step = 0; step < 100; step += 1) {
      await routes.find(name("a"));
      await clock.pass(100);
    }
    expect(source.count("report") - before).toBeLessThanOrEqual(10);
  });

  test("and after a pause, several pages in a row", async () => {
    const { clock, source, routes } = await followed();
    source.pageRows = 10;
    for (let at = 0; at < 55; at += 1) source.claim(`n-${at}`, "9");
    await clock.pass(60_000);
    const before = source.asked.length;
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory" });
    expect(source.asked.slice(before).filter((each) => each.startsWith("report"))).toHaveLength(6);
  });
});

describe("a gap makes the report begin anew", () => {
  test("[Q3] case 7: after a pruned log, nothing older is proved", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(10_000);
    source.claim("a", "2");
    source.prunedThrough = source.position;
    source.log = [];
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
    await clock.pass(10_000);
    const before = source.count("find");
    expect(await routes.find(name("a"))).toMatchObject({ layer: "memory", cell: { id: "2" } });
    expect(source.count("find")).toBe(before);
  });

  test("[Q5] case 7: after a pause longer than W, nothing that was remembered is used", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(299_000);
    source.claim("a", "2");
    await clock.pass(2_000);
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
    expect(source.asked.filter((each) => each.startsWith("report"))).toEqual(["report 0", "report 0"]);
  });

  test.each([
    ["of another shard", { shard: 1 }],
    ["that begins elsewhere", { after: 103 }],
    ["that ends before it begins", { through: 0 }],
    ["that is full but empty", { held: [], hasMore: true, through: 102 }],
    ["with positions out of order", { held: [[104, []] as const, [103, []] as const] }],
    ["with positions beyond its end", { held: [[999, []] as const] }],
  ])("[Q3] a page %s proves nothing", async (_, wrong) => {
    const { clock, source, routes, failures } = await followed();
    await clock.pass(10_000);
    const page = {
      kind: "page",
      shard: 0,
      after: 102,
      through: 110,
      held: [],
      hasMore: false,
      ageMs: 0,
    } as const;
    expect(source.position).toBe(102);
    source.nextReports.push({ ...page, ...wrong });
    source.claim("a", "2");
    expect(await routes.find(name("a"))).toMatchObject({ layer: "coordinator", cell: { id: "2" } });
    expect(failures).toMatchObject([{ operation: "report" }]);
  });

  test("[Q3] a full page doesn't say that nothing happened since", async () => {
    const { clock, source, routes } = await followed();
    await clock.pass(10_000);
    const held = [[103, ["f".repeat(16)]]] as const;
    const full = { kind: "page", shard: 0, after: 102, through: 103, held, hasMore: true, ageMs: 0 } as const;
    source.nextReports.push(full, { kind: "failed", detail: "no" });
    source.claim("a", "2");
    expect(await routes.find(name("a"))).toMatchObject({ cell: { id: "2" } });
  });

  test("[Q5] a shard whose positions went back proves nothing for entries from before", async () => {
    const { clock, source, routes } = await followed();
    await routes.find(name("b"));
    // The shard comes back in an earlier state, and accepts its loss.
    source.position = 90;
    source.log = [];
    source.prunedThrough = 90;
    source.nextReports.push({ kind: "pruned" });
    await clock.pass(3_000);
    await routes.find(name("c"));
    while (source.position < 102) source.claim("d", "1");
    await clock.pass(1_000);
    await routes.find(name("d"));
    const before = source.count("find b");
    await routes.find(name("b"));
    expect(source.count("find b")).toBe(before + 1);
  });

  test("a clock that was set back makes the reports begin anew", async () => {
    const { clock, source, routes } = await followed();
    clock.jump(-60_000);
    await routes.find(name("a"));
    await clock.pass(100);
    expect(source.asked.at(-1)).toBe("report 0");
  });
});

describe("memory", () => {
  test("[Q5] of reports is bounded, and what is forgotten proves nothing", async () => {
    const { clock, source, routes } = await followed({ memoryBytes: 65_536 });
    for (let second = 0; second < 100; second += 1) {
      for (let at = 0; at < 20; at += 1) source.claim(`${second}-${at}`, "9");
      await clock.pass(1_000);
      await routes.find(name("a"));
      expect(routes.bytes).toBeLessThanOrEqual(65_536);
    }
    // The entry is older than the keys that are left, so it was asked for again now and then.
    expect(source.count("find a")).toBeGreaterThan(1);
    expect(source.count("find a")).toBeLessThan(50);
  });

  test("of reports ends with the life of the entries", async () => {
    const { clock, source, routes } = await followed({ reportedMaxAgeMs: 10_000 });
    const sizes: number[] = [];
    for (let second = 0; second < 60; second += 1) {
      source.claim(`n-${second}`, "9");
      await clock.pass(1_000);
      await routes.find(name("a"));
      sizes.push(routes.bytes);
    }
    expect(Math.max(...sizes.slice(30))).toBeLessThanOrEqual(Math.max(...sizes.slice(0, 30)));
  });
});

describe("addresses", () => {
  test("of entries that live for minutes are refreshed", async () => {
    const { clock, source, routes } = await followed();
    source.addresses.set("1", "https://moved.example.com");
    for (let second = 0; second < 40; second += 1) {
      await clock.pass(1_000);
      await routes.find(name("a"));
    }
    expect(await routes.find(name("a"))).toMatchObject({
      layer: "memory",
      cell: { id: "1", address: "https://moved.example.com" },
    });
    expect(source.count("cells")).toBeLessThanOrEqual(3);
  });
});

test("what hooks are told about reports", async () => {
  const { clock, source, routes, reports } = await followed();
  source.claim("b", "2");
  source.claim("c", "2");
  await clock.pass(5_000);
  await routes.find(name("a"));
  expect(reports).toEqual([
    { shard: 0, ageMs: 0, keys: 0 },
    { shard: 0, ageMs: expect.any(Number) as number, keys: 2 },
  ]);
  expect(reports[1]?.ageMs).toBeGreaterThanOrEqual(5_000);
});
