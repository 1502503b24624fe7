/**
 * Tests the benchmark: its load and figures are correct, and the peers give the same answers as Leasehold.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { closedLoop } from "../../bench/client/closed-loop.ts";
import { openLoop } from "../../bench/client/open-loop.ts";
import type { Result as GrowthResult } from "../../bench/growth/results.ts";
import { MANY_CLAIMS, variantOf } from "../../bench/growth/variants.ts";
import { readOptions } from "../../bench/options.ts";
import { BadOption } from "../../bench/program.ts";
import type { PeerName } from "../../bench/peers.ts";
import { figuresOf, median, ratiosOf } from "../../bench/report/figures.ts";
import { targets } from "../../bench/report/targets.ts";
import { Results, type Result } from "../../bench/results.ts";
import { checkPeer, newFolder } from "./check-peer.ts";

const result = (peer: PeerName, round: number, turns: number, errors = 0): Result => ({
  commit: "abc",
  part: "cycles",
  peer,
  what: "1 claim",
  clients: 8,
  round,
  turns,
  errors,
  seconds: 1,
  p50Ms: round,
  p99Ms: 2 * round,
  cpuMs: turns,
});

test("standalone grants, refuses, commits and finds", () => checkPeer("standalone"));

test("failed turns are not counted as throughput, and not timed", async () => {
  let turns = 0;
  const loaded = await closedLoop({
    clients: 3,
    seconds: 0.05,
    turn: async () => {
      await setTimeout(1);
      return turns++ % 2 === 0;
    },
  });
  expect(loaded.turns + loaded.errors).toBe(turns);
  expect(loaded.turns).toBe(Math.ceil(turns / 2));
  expect(loaded.latencies.count).toBe(loaded.turns);
});

test("an open loop sends each call when it is due, even without answers", async () => {
  let sent = 0;
  const answered = Promise.withResolvers<boolean>();
  const running = openLoop({ perSecond: 1_000, turn: () => ((sent += 1), answered.promise) }, 0.05);
  await expect.poll(() => sent).toBe(50);
  answered.resolve(true);
  expect(await running).toMatchObject({ turns: 50, errors: 0 });
});

test("figures are medians over the rounds, and ratios are medians of the ratios within rounds", () => {
  const results = [result("leasehold", 0, 100), result("leasehold", 1, 90), result("leasehold", 2, 10)];
  const others = [result("d1-only", 0, 50), result("d1-only", 1, 90), result("d1-only", 2, 100)];
  const all = [...results, ...others];
  const eight = { part: "cycles", what: "1 claim", clients: 8 } as const;
  expect(figuresOf(all, eight, "leasehold")).toMatchObject({
    perSecond: 90,
    p50Ms: 1,
    p99Ms: 2,
    cpuMs: 1,
    rounds: 3,
  });
  const ratios = ratiosOf(all, eight, "leasehold", "d1-only");
  expect(ratios).toEqual([2, 1, 0.1]);
  expect(median(ratios)).toBe(1);
  expect(ratiosOf(all, eight, "leasehold", "d1-only", ({ turns }) => turns + 50)).toEqual([1.5, 1, 0.4]);
  expect(figuresOf(all, { ...eight, clients: 32 }, "leasehold")).toBeUndefined();
  expect(ratiosOf(all, eight, "leasehold", "etcd")).toEqual([]);
});

test("a performance target is reached if the median of its rounds is, and is listed if not measured", () => {
  const of = (peer: PeerName, clients: number, rates: readonly number[]): Result[] =>
    rates.map((turns, round) => ({ ...result(peer, round, turns), clients, p50Ms: 1_000 / turns }));
  const claims = (count: number, round: number, seconds: number): GrowthResult => ({
    commit: "abc",
    axis: "claims",
    variant: variantOf({ claims: count }),
    work: "cycles",
    round,
    turns: 100,
    errors: 0,
    seconds,
    p50Ms: 1,
    cpuMs: 100 * seconds,
  });
  const lines = targets({
    results: [
      ...of("leasehold", 32, [150, 140, 160]),
      ...of("d1-only", 32, [100, 100, 100]),
      ...of("write", 32, [150, 280, 320]),
      ...of("leasehold", 1, [100, 100, 100]),
      ...of("d1-only", 1, [80, 90, 60]),
    ],
    growth: [1, 2, 3].flatMap((seconds, round) => [
      claims(1_000, round, 1),
      claims(MANY_CLAIMS, round, seconds),
    ]),
  });
  const rowOf = (what: string): string | undefined => lines.find((line) => line.startsWith(`| ${what} |`));
  const leasehold = "`leasehold` ÷ `d1-only`";
  expect(rowOf(`${leasehold}, cycles of 1 claim`)).toContain("| ≥ 1.5 | 1.50 | yes | 1.50, 1.40, 1.60 |");
  expect(rowOf("`leasehold` ÷ `write`, cycles of 1 claim")).toContain("| ≥ 0.9 | 0.50 | **no** |");
  expect(rowOf(`${leasehold}, p50 of a cycle of 1 claim, 1 client`)).toContain("| ≤ 0.8 | 0.80 | yes |");
  expect(rowOf(`${leasehold}, cycles of 4 claims`)).toContain("| ≥ 1.5 | | not measured | |");
  expect(rowOf("`leasehold`, time of cycles with 5,000,000 claims ÷ with 1,000")).toContain(
    "| ≤ 1.2 | 2.00 | **no** | 1.00, 2.00, 3.00 |",
  );
});

test("an interrupted run continues, and repeats measurements with errors", () => {
  const path = join(newFolder(), "results.jsonl");
  const before = new Results(path, false);
  before.add(result("leasehold", 0, 100));
  before.add(result("d1-only", 0, 50, 3));
  const after = new Results(path, false);
  expect(after.has(result("leasehold", 0, 0))).toBe(true);
  expect(after.has(result("d1-only", 0, 0))).toBe(false);
  expect(after.has(result("leasehold", 1, 0))).toBe(false);
  after.add(result("d1-only", 0, 60));
  expect(new Results(path, false).all).toEqual([result("leasehold", 0, 100), result("d1-only", 0, 60)]);
  expect(new Results(path, true).all).toEqual([]);
});

test("a wrong option is refused with an error that names it", () => {
  expect(readOptions(["--only", "etcd,object", "--parts", "load"])).toMatchObject({
    only: ["etcd", "object"],
    parts: ["load"],
    full: false,
  });
  expect(readOptions(["--help"])).toBeUndefined();
  expect(() => readOptions(["--only", "mysql"])).toThrow(BadOption);
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, "../../bench/main.ts"), "--nope"],
    { encoding: "utf8" },
  );
  expect(status).toBe(2);
  expect(stderr).toContain("--nope");
  expect(stderr).toContain("npm run bench");
  expect(stderr).not.toContain("    at ");
});
