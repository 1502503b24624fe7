/**
 * Tests the benchmark: its load and figures are correct, and the peers give the same answers as Leasehold.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { closedLoop } from "../../bench/client/closed-loop.ts";
import { CONTESTED, Cycles, Lookups } from "../../bench/client/cycles.ts";
import { Names } from "../../bench/client/names.ts";
import { openLoop } from "../../bench/client/open-loop.ts";
import { readOptions } from "../../bench/options.ts";
import { BadOption } from "../../bench/program.ts";
import { Peer, type PeerName } from "../../bench/peers.ts";
import { figuresOf, ratioOf } from "../../bench/report/figures.ts";
import { Results, type Result } from "../../bench/results.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

const result = (peer: PeerName, round: number, turns: number, errors = 0): Result => ({
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

test.each(["leasehold", "standalone", "d1-only", "postgres", "postgres-transactions"] as const)(
  "%s grants, refuses, commits and finds",
  async (program) => {
    const peer = await Peer.start(program, newFolder());
    onTestFinished(() => peer.stop());
    const cycles = new Cycles(peer.serving(program), 2, 2, new Names("t"), false);
    const lookups = new Lookups(peer.serving(program), 1, false);
    const [first, second] = [cycles.freshNames(), cycles.freshNames()];
    expect(await cycles.cycle("1", first)).toBe(200);
    // A begin is all or nothing: one name is taken, so the other one must stay free.
    expect(await cycles.begin("2", [second[0] ?? "", first[0] ?? ""])).toBe(409);
    expect(await lookups.lookup(first[1] ?? "")).toBe(200);
    expect(await lookups.lookup(second[0] ?? "")).toBe(404);
    expect(await cycles.cycle("2", second)).toBe(200);
    // Every hundredth turn begins one of these names, so they must be taken.
    expect(await cycles.cycle("1", CONTESTED)).toBe(200);
    const before = peer.cpuSeconds();
    const loaded = await closedLoop({ clients: 2, seconds: 0.3, turn: (client) => cycles.turn(client) });
    expect(loaded).toMatchObject({ errors: 0 });
    expect(loaded.turns).toBeGreaterThan(0);
    expect(peer.cpuSeconds()).toBeGreaterThanOrEqual(before);
    cycles.close();
    lookups.close();
  },
);

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
  expect(figuresOf(all, "cycles", "1 claim", 8, "leasehold")).toMatchObject({
    perSecond: 90,
    p50Ms: 1,
    p99Ms: 2,
    cpuMs: 1,
    rounds: 3,
  });
  expect(ratioOf(all, "cycles", "1 claim", 8, "leasehold", "d1-only")).toBe(1);
  expect(figuresOf(all, "cycles", "1 claim", 32, "leasehold")).toBeUndefined();
  expect(ratioOf(all, "cycles", "1 claim", 8, "leasehold", "etcd")).toBeUndefined();
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
