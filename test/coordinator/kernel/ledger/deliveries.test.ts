/** Tests of deliveries: when they are retried, what a restart finds, and what the bookkeeping costs. */
import { expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../../src/common/limits.ts";
import type { Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { shardOf, shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";
import { insertLeases, unfinished } from "../../../support/leases.ts";
import { bucketType } from "../../../support/types.ts";
import { privatePath } from "../../../support/private-fields.ts";

/** No sweep runs, so only deliveries of the ledger apply decisions. */
const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ shards: 1, limits: { sweepAfterMs: 600_000, ...limits } });
const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;
const told = (c: Cluster): number => c.messages("exchange").filter(isDecision).length;
const loseDecisions = (call: Call): "lose" | "deliver" => (isDecision(call) ? "lose" : "deliver");
const commit = (c: Cluster, lease: string) =>
  c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED"));
const alarm = (c: Cluster) => c.clock.runUntil(c.ledger("1").object.alarm());
const owned = (c: Cluster): string[] => c.claims().map(({ canonical }) => canonical);

async function granted(c: Cluster, name: string): Promise<string> {
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [name])));
  return lease;
}

/** Commits a lease, and lets the ledger note that this is applied. So later rows may be pending. */
async function warmUp(c: Cluster): Promise<void> {
  await c.clock.runUntil(commit(c, await granted(c, "warm-up")));
  await c.pass(60_000);
}

async function unapplied(c: Cluster): Promise<number> {
  const answer = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.unappliedDecisions;
}

test("[N1] the decision of a lease that a shard has asked about is sent at once", async () => {
  const c = await start({ decisionWaitMs: 1_000 });
  const [asked, other] = [await granted(c, "asked"), await granted(c, "other")];
  const key = { type: bucketType("ROUTES"), canonical: "asked" };
  await c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [key] }));
  const known = privatePath(c.ledger("1").object, "#part.deliveries.#asked");
  expect(known).toEqual(new Set([asked]));
  await c.clock.runUntil(commit(c, other));
  await c.pass(0);
  expect(told(c)).toBe(0);
  await c.clock.runUntil(commit(c, asked));
  await c.pass(0);
  expect([told(c), owned(c).toSorted()]).toEqual([1, ["asked", "other"]]);
  expect(known).toEqual(new Set());
});

function nameOn(c: Cluster, shard: number, nth = 0): string {
  for (let n = 0, seen = 0; ; n += 1)
    if (shardOf(bucketType("ROUTES"), `n${n}`, shardsOf(c.envelope.placement)) === shard && seen++ === nth)
      return `n${n}`;
}

/** The number of decisions that a restart would send again. */
const kept = (c: Cluster): number => unfinished(c.ledger("1").database, 1).length;

/** Inserts decisions of an earlier instance that need no delivery to any shard. */
const insertOld = (c: Cluster, count: number, pending: 0 | 1 = 1): string[] =>
  insertLeases(c.ledger("1").database, { count, prefix: "old-", pending });

test("[C3] [M3] a restart finds a decision that came after all others were applied", async () => {
  const c = await start();
  await c.clock.runUntil(commit(c, await granted(c, "ada")));
  await c.pass(60_000);
  expect(kept(c)).toBe(0);
  const lease = await granted(c, "bob");
  c.fate = loseDecisions;
  await c.clock.runUntil(commit(c, lease));
  c.ledger("1").restart();
  c.fate = () => "deliver";
  expect(await unapplied(c)).toBe(1);
  await c.pass(10_000);
  expect(owned(c)).toEqual(["ada", "bob"]);
});

test("[C3] [M3] decisions of an earlier instance are sent at once, even if its alarm was lost", async () => {
  const c = await start();
  const lease = await granted(c, "ada");
  c.fate = loseDecisions;
  await c.clock.runUntil(commit(c, lease));
  c.fate = () => "deliver";
  const ledger = c.ledger("1");
  ledger.alarmAtMs = undefined;
  ledger.restart();
  await unapplied(c);
  await c.pass(1_000);
  expect(owned(c)).toEqual(["ada"]);
});

test("[C3] a missed decision is retried after its own pause, not with the applied position", async () => {
  const c = await start({ exchangeTimeoutMs: 100 });
  const lease = await granted(c, "ada");
  c.fate = loseDecisions;
  await c.clock.runUntil(commit(c, lease));
  c.fate = () => "deliver";
  await c.pass(2_000);
  expect(owned(c)).toEqual(["ada"]);
});

test("[M3] the alarm neither waits for a delivery that a caller runs, nor rings all the time", async () => {
  const c = await start();
  const lease = await granted(c, "ada");
  c.fate = loseDecisions;
  await c.clock.runUntil(commit(c, lease));
  // It is long overdue, because no alarm has rung.
  await c.clock.pass(30_000);
  const again = commit(c, lease);
  await c.clock.pass(10);
  const before = { now: c.clock.now(), told: told(c) };
  await alarm(c);
  expect({ now: c.clock.now(), told: told(c) }).toEqual(before);
  expect(c.ledger("1").alarmAtMs).toBeGreaterThan(before.now + 1_000);
  await c.clock.runUntil(again);
});

test("a cron call and an alarm without work write nothing", async () => {
  const c = await start();
  await c.clock.runUntil(commit(c, await granted(c, "ada")));
  await c.pass(60_000);
  const before = c.transactions();
  await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  await alarm(c);
  expect(c.transactions()).toBe(before);
});

test("[M3] a decision applied during the alarm's write is recorded later, with a limited wait", async () => {
  const c = await start();
  const leases = [await granted(c, "ada"), await granted(c, "bob")];
  await c.clock.runUntil(commit(c, leases[0] ?? ""));
  c.fate = (call) => (isDecision(call) ? "slow" : "deliver");
  const second = commit(c, leases[1] ?? "");
  await c.clock.pass(10);
  const ledger = c.ledger("1");
  const release = ledger.sql.holdFlushes();
  ledger.alarmAtMs = undefined;
  const ringing = ledger.object.alarm();
  await c.clock.pass(100);
  release();
  await c.clock.runUntil(Promise.all([ringing, second]));
  expect(owned(c)).toEqual(["ada", "bob"]);
  expect(kept(c)).toBe(1);
  const before = c.transactions();
  await c.pass(1_000);
  expect(c.transactions()).toBe(before);
  await c.pass(10_000);
  expect(kept(c)).toBe(0);
});

test("[C3] an alarm delivers a limited part of a backlog, and loading more forgets no pause", async () => {
  const c = await start();
  await warmUp(c);
  insertOld(c, 10_400);
  c.ledger("1").restart();
  const lease = await granted(c, "ada");
  c.fate = loseDecisions;
  for (let n = 0; n < 4; n += 1) await c.clock.runUntil(commit(c, lease));
  const before = told(c);
  expect(await unapplied(c)).toBe(10_000);
  await alarm(c);
  expect(await unapplied(c)).toBe(9_500);
  for (let n = 1; n < 21; n += 1) await alarm(c);
  expect([await unapplied(c), kept(c), told(c)]).toEqual([1, 1, before]);
});

test.each([
  ["are pending", 1],
  ["were not examined", 0],
] as const)(
  "[C3] [S2] no decision counts as applied that was not loaded yet: leases that %s",
  async (_state, pending) => {
    const c = await start();
    if (pending === 1) await warmUp(c);
    else await granted(c, "warm-up");
    insertOld(c, 10_400, pending);
    c.ledger("1").restart();
    expect(await unapplied(c)).toBe(10_000);
    for (let n = 0; n < 10; n += 1) await alarm(c);
    // Before the next alarm, the cell repeats nearly all decisions that are still in memory.
    for (let n = 5_000; n < 9_500; n += 500) {
      await c.clock.runUntil(
        Promise.all(Array.from({ length: 500 }, (_, more) => commit(c, `old-${n + more + 1}`))),
      );
    }
    expect(await unapplied(c)).toBe(500);
    await alarm(c);
    expect([await unapplied(c), kept(c)]).toEqual([400, 400]);
    c.ledger("1").restart();
    expect(await unapplied(c)).toBe(400);
  },
);

test("[C3] a decision applied during the alarm's write hides no older decision from a restart", async () => {
  const c = await Cluster.start({ shards: 2, limits: { sweepAfterMs: 600_000 } });
  const [stuck, slow, quick] = [
    await granted(c, nameOn(c, 0)),
    await granted(c, nameOn(c, 1)),
    await granted(c, nameOn(c, 0, 1)),
  ];
  c.fate = loseDecisions;
  await c.clock.runUntil(commit(c, stuck));
  await c.clock.pass(defaultLimits.exchangeTimeoutMs);
  c.fate = (call) => (isDecision(call) && call.to === "shard 1" ? "slow" : "deliver");
  await c.clock.runUntil(commit(c, slow));
  await c.clock.runUntil(commit(c, quick));
  await c.clock.pass(1);
  expect(owned(c)).toEqual([nameOn(c, 0, 1)]);
  const release = c.ledger("1").sql.holdFlushes();
  const ringing = c.ledger("1").object.alarm();
  await c.clock.pass(100);
  release();
  await c.clock.runUntil(ringing);
  expect(owned(c)).toContain(nameOn(c, 1));
  c.ledger("1").restart();
  await unapplied(c);
  await c.pass(10_000);
  expect(owned(c)).toContain(nameOn(c, 0));
});

/** Inserts granted leases of an earlier instance, with the executions of a lease that is there. */
function insertGranted(c: Cluster, count: number): string[] {
  const { database } = c.ledger("1");
  const [first] = database.prepare("SELECT epochs FROM lease LIMIT 1").all() as { epochs: string }[];
  return insertLeases(database, {
    count,
    prefix: "granted-",
    pending: 1,
    state: "GRANTED",
    epochs: first?.epochs ?? null,
  });
}

const inMemory = (c: Cluster, field: string): number =>
  (privatePath(c.ledger("1").object, `#part.deliveries.${field}`) as Map<string, unknown>).size;

async function commitAll(c: Cluster, leases: readonly string[]): Promise<void> {
  for (let from = 0; from < leases.length; from += 500) {
    const answers = Promise.all(leases.slice(from, from + 500).map((lease) => commit(c, lease)));
    expect((await c.clock.runUntil(answers)).filter(({ ok }) => !ok)).toEqual([]);
  }
}

test("[C6] [C3] [M6] while a shard is down, commits go on, in limited memory, and none is lost", async () => {
  const c = await start({ exchangeTimeoutMs: 100 });
  await warmUp(c);
  const leases = insertGranted(c, 10_700);
  c.ledger("1").restart();
  c.fate = loseDecisions;
  await commitAll(c, leases);
  expect(inMemory(c, "#open")).toBe(10_000);
  // A decision on a shard that can be reached is still delivered at once.
  c.fate = () => "deliver";
  await c.clock.runUntil(commit(c, await granted(c, "ada")));
  expect(owned(c)).toEqual(["ada", "warm-up"]);
  expect(inMemory(c, "#open")).toBeLessThanOrEqual(10_000);
  await c.pass(600_000);
  expect([await unapplied(c), kept(c)]).toEqual([0, 0]);
});

test("[C3] [M6] without room for one more delivery, the alarm delivers a decision", async () => {
  const c = await start({ exchangeTimeoutMs: 30_000 });
  await warmUp(c);
  const leases = insertGranted(c, 10_700);
  c.ledger("1").restart();
  c.fate = loseDecisions;
  await commitAll(c, leases);
  expect(inMemory(c, "#open")).toBe(10_000);
  c.fate = () => "deliver";
  await c.pass(600_000);
  expect([await unapplied(c), kept(c)]).toEqual([0, 0]);
});

test("[M6] [C2] applied decisions that wait for the alarm take limited memory", async () => {
  const c = await start();
  await warmUp(c);
  const leases = insertGranted(c, 20_500);
  c.ledger("1").restart();
  await commitAll(c, leases);
  expect(inMemory(c, "#applied")).toBe(20_000);
  await c.pass(60_000);
  expect([await unapplied(c), kept(c), inMemory(c, "#applied")]).toEqual([0, 0, 0]);
});

test("[N1] [C3] decisions for a shard that does not answer leave room for those of others", async () => {
  // Two begins of this size fill the memory for batches. Nothing is swept meanwhile.
  const c = await Cluster.start({ shards: 2, limits: { beginBytes: 40_000, sweepAfterMs: 600_000 } });
  const namesOn = (shard: number, prefix: string, count: number): string[] => {
    const names = Array.from({ length: 8 * count }, (_, n) => `${prefix}-${n}`);
    return names.filter((name) => shardOf(bucketType("ROUTES"), name, 2) === shard).slice(0, count);
  };
  const { object } = c.ledger("1");
  const held: string[] = [];
  for (let n = 0; n < 40; n += 1) {
    const lease = c.uuid();
    const names = namesOn(0, `stuck-${n}-${"x".repeat(80)}`, 20);
    await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, names)));
    held.push(lease);
  }
  const lease = c.uuid();
  const [name = ""] = namesOn(1, "healthy", 1);
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, [name])));
  c.fate = ({ to }) => (to === "shard 0" ? "lose" : "deliver");
  for (const each of held) void object.decide(decideRequest(c.envelope, each, "COMMITTED"));
  await c.pass(1_000);
  void object.decide(decideRequest(c.envelope, lease, "COMMITTED"));
  await c.pass(2_000);
  expect(c.claims().map(({ canonical }) => canonical)).toEqual([name]);
  // When the shard answers again, all of its decisions arrive.
  c.fate = () => "deliver";
  await c.pass(300_000);
  expect(c.claims()).toHaveLength(1 + 40 * 20);
});
