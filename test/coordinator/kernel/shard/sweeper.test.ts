/** Tests of when a shard inquires about its holds on its own (B8, M3). */
import { expect, test, vi } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Exchange, Inquiry } from "../../../../src/coordinator/kernel/messages.ts";
import { HeldNames, type EntryPage } from "../../../../src/coordinator/kernel/shard/held-names.ts";
import type { HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { Cluster } from "../../../support/cluster.ts";
import { changeHeld } from "../../../support/holds.ts";
import { beginRequest, decideRequest, exchangeOf } from "../../../support/ops.ts";

const SWEEP_AFTER_MS = 5_000;

const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ shards: 1, limits: { sweepAfterMs: SWEEP_AFTER_MS, maxBackoffMs: 60_000, ...limits } });

async function begin(c: Cluster, names: string[], cell = "1"): Promise<string> {
  const lease = c.uuid();
  expect(
    await c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, names))),
  ).toMatchObject({ ok: true });
  return lease;
}

const asked = (c: Cluster): number => c.messages("inquire").length;

/** Runs the shard's alarm handler, whichever alarm is set. */
async function ring(c: Cluster): Promise<void> {
  c.shard(0).alarmAtMs = undefined;
  await c.clock.runUntil(c.shard(0).object.alarm());
}

test("[B8] [M3] a hold is inquired about when it is old enough, and the alarm rings for that", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  expect(c.shard(0).alarmAtMs).toBe(c.clock.now() + SWEEP_AFTER_MS);
  c.clock.jump(SWEEP_AFTER_MS - 1);
  await ring(c);
  expect(asked(c)).toBe(0);
  c.clock.jump(1);
  await ring(c);
  expect(asked(c)).toBe(1);
});

test("[B8] the pause after an inquiry is half the hold's age, within its limits", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  const askedAtMs: number[] = [];
  const since = c.clock.now();
  for (let ms = 0; ms < 600_000; ms += 1_000) {
    c.clock.jump(1_000);
    const before = asked(c);
    await ring(c);
    if (asked(c) > before) askedAtMs.push(c.clock.now() - since);
  }
  expect(askedAtMs.slice(0, 4)).toEqual([5_000, 10_000, 15_000, 23_000]);
  const pauses = askedAtMs.slice(1).map((atMs, index) => atMs - (askedAtMs[index] ?? 0));
  expect(pauses.at(-1)).toBe(60_000);
  expect(Math.max(...pauses)).toBe(60_000);
});

test("[M3] [B8] the alarm after a sweep rings when the next inquiry is due, and never at once", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  const first = c.clock.now();
  c.clock.jump(4_000);
  await begin(c, ["bob"]);
  c.clock.jump(1_000);
  await ring(c);
  // Bob is next, four seconds younger.
  expect(c.shard(0).alarmAtMs).toBe(first + 4_000 + SWEEP_AFTER_MS);
  c.clock.jump(3_900);
  await ring(c);
  // The next inquiry is due so soon that the minimum pause applies.
  expect(c.shard(0).alarmAtMs).toBe(c.clock.now() + SWEEP_AFTER_MS / 4);
});

test("[M3] a shard without holds sets no alarm, also after its last hold is gone", async () => {
  const c = await start();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  expect(c.shard(0).alarmAtMs).toBeUndefined();
  const lease = await begin(c, ["ada"]);
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
  await ring(c);
  expect(c.shard(0).alarmAtMs).toBeUndefined();
  expect(asked(c)).toBe(0);
});

test("[M3] a message with only decisions sets no alarm; a refused prepare replaces a lost one", async () => {
  const c = await start();
  const lease = await begin(c, ["ada", "eve"]);
  await c.pass(SWEEP_AFTER_MS);
  c.shard(0).restart();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  c.shard(0).alarmAtMs = undefined;
  c.clock.jump(120_000);
  const { incarnation, counter } = c
    .messages("exchange")
    .flatMap((call) => (call.message as Exchange).prepares)[0] ?? { incarnation: 0, counter: 0 };
  const decision = {
    cell: "1",
    lease,
    incarnation,
    counter,
    outcome: "COMMITTED" as const,
    epoch: 99,
    keys: [],
  };
  await c.clock.runUntil(c.shard(0).object.exchange(exchangeOf(c.envelope, "1", { decisions: [decision] })));
  expect(c.shard(0).alarmAtMs).toBeUndefined();
  await c.clock.runUntil(c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"])));
  expect(c.shard(0).alarmAtMs).toBe(c.clock.now() + SWEEP_AFTER_MS);
});

test("[B8] an unanswered inquiry is repeated after its pause, and the sweep handles the others", async () => {
  const c = await start();
  await begin(c, ["ada"], "1");
  const gone = await begin(c, ["bob"], "2");
  c.fate = (call) => (call.to === "ledger 1" || call.method === "exchange" ? "lose" : "deliver");
  await c.clock.runUntil(c.ledger("2").object.decide(decideRequest(c.envelope, gone, "ROLLED_BACK")));
  c.clock.jump(SWEEP_AFTER_MS);
  await ring(c);
  expect(c.holds().map(({ canonical }) => canonical)).toEqual(["ada"]);
  const before = asked(c);
  c.clock.jump(1);
  await ring(c);
  expect(asked(c)).toBe(before);
  c.clock.jump(60_000);
  await ring(c);
  expect(asked(c)).toBe(before + 1);
});

/** Returns the incarnation of cell 1's ledger, which begins a lease and rolls it back if it has none. */
async function incarnationOf(c: Cluster): Promise<number> {
  const { database, object } = c.ledger("1");
  const read = database.prepare("SELECT max(incarnation) AS newest FROM incarnation");
  if (read.get()?.["newest"] === null) {
    const lease = await begin(c, ["warm-up"]);
    await c.clock.runUntil(object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
  }
  return Number(read.get()?.["newest"]);
}

/** Makes holds that no lease of cell 1 owns, named `prefix-0` and so on. */
async function insertHolds(c: Cluster, count: number, prefix: string, heldAtMs = 0): Promise<void> {
  const incarnation = await incarnationOf(c);
  changeHeld(c.shard(0), (log) => {
    const holds = Array.from({ length: count }, (_, n): HoldRow => ({
      bucket_type: 1,
      canonical: `${prefix}-${n}`,
      kind: "create",
      cell: "1",
      lease: `lease-${n}`,
      incarnation,
      counter: n,
      epoch: log.nextEpoch(),
      held_at_ms: heldAtMs,
      uuid: "u",
      value: "v",
      subject_type: 1,
      subject_id: "1",
      source_type: 1,
      source_id: "1",
      source_order: "00011",
      scope: null,
      granted_by: null,
    }));
    log.held.add(holds, () => log.nextEpoch());
  });
}

test("[B8] [M7] a sweep inquires about a limited number of holds; the next one continues", async () => {
  const c = await start({ maxBackoffMs: 3_600_000, sweepAfterMs: 600_000 });
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  await insertHolds(c, 1_200, "old");
  const left: number[] = [];
  for (let sweep = 0; sweep < 3; sweep += 1) {
    await ring(c);
    left.push(c.holds().length);
  }
  expect(left).toEqual([700, 200, 0]);
});

test("[B8] [M7] a sweep reads a limited number of holds, and passes those that are not due", async () => {
  const c = await start();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  await insertHolds(c, 5_600, "young", c.clock.now());
  await insertHolds(c, 1, "zombie");
  const pages = vi.spyOn(HeldNames.prototype, "after");
  const before = c.shard(0).sql.counts.rowsRead;
  await ring(c);
  const counts = pages.mock.results.map(({ value }) => (value as EntryPage).count);
  expect(counts).toEqual(Array<number>(10).fill(500));
  // The times of holds are in memory, so no row is read of those that are not due.
  expect(c.shard(0).sql.counts.rowsRead - before).toBeLessThan(20);
  expect(c.holds()).toHaveLength(5_601);
  // Holds are left to read, so the next sweep comes soon.
  expect(c.shard(0).alarmAtMs).toBe(c.clock.now() + SWEEP_AFTER_MS / 4);
  await ring(c);
  expect(c.holds()).toHaveLength(5_600);
  expect(c.shard(0).alarmAtMs).toBe(c.clock.now() + SWEEP_AFTER_MS);
});

test("[B8] [M6] old granted leases do not keep the sweep from the executions after them", async () => {
  const c = await start({ concurrentBegins: 1_000 });
  const leases = Array.from({ length: 510 }, (_, n) => `n${n}`);
  await c.clock.runUntil(Promise.all(leases.map((name) => begin(c, [name]))));
  await insertHolds(c, 1, "zombie");
  c.clock.jump(SWEEP_AFTER_MS);
  await ring(c);
  expect(c.holds()).toHaveLength(511);
  c.clock.jump(1);
  await ring(c);
  expect(c.holds()).toHaveLength(510);
  // All of them are due again, but the sweep inquires about no more than its limit.
  c.clock.jump(600_000);
  await ring(c);
  const questions = c.messages("inquire").map(({ message }) => (message as Inquiry).questions.length);
  expect(questions.at(-1)).toBe(500);
});

test("[M4] [B8] holds are inquired about although the clock was set back after a sweep", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  c.clock.jump(86_400_000);
  await ring(c);
  await begin(c, ["bob"]);
  c.clock.jump(-86_400_000 + SWEEP_AFTER_MS);
  const before = asked(c);
  await ring(c);
  const questions = c
    .messages("inquire")
    .slice(before)
    .map(({ message }) => (message as Inquiry).questions.length);
  expect(questions).toEqual([2]);
  expect(c.shard(0).alarmAtMs).toBeLessThanOrEqual(c.clock.now() + 60_000);
});

test("[M3] [B8] a young hold is inquired about in time, however many older ones wait", async () => {
  const c = await start({ concurrentBegins: 1_000 });
  const first = c.clock.now();
  await c.clock.runUntil(Promise.all(Array.from({ length: 300 }, (_, n) => begin(c, [`n${n}`]))));
  c.clock.jump(4_000);
  await begin(c, ["bob"]);
  c.clock.jump(1_000);
  await ring(c);
  expect(c.shard(0).alarmAtMs).toBe(first + 4_000 + SWEEP_AFTER_MS);
});
