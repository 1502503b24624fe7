/** What objects count, and what a message for metrics costs. */
import { describe, expect, test } from "vitest";
import type { LedgerMetrics, ShardMetrics } from "../../../../src/coordinator/kernel/metrics/messages.ts";
import { begin, decide } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { insertLeases } from "../../../support/leases.ts";
import { decideRequest, keyOf } from "../../../support/ops.ts";

async function allLedgerMetrics(c: Cluster, cell: string): Promise<LedgerMetrics> {
  const reply = await c.clock.runUntil(c.ledger(cell).object.metrics(c.envelope));
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
}

/** Leaves out what has not happened. */
async function ledgerMetrics(c: Cluster, cell = "1"): Promise<LedgerMetrics> {
  const { begins, decisions, refusedDecisions, ...others } = await allLedgerMetrics(c, cell);
  const happened = <Each extends { count: number }>(all: readonly Each[]): Each[] =>
    all.filter(({ count }) => count > 0);
  return {
    ...others,
    begins: happened(begins),
    decisions: happened(decisions),
    refusedDecisions: happened(refusedDecisions),
  };
}

async function shardMetrics(c: Cluster, shard = 0): Promise<ShardMetrics> {
  const reply = await c.clock.runUntil(c.shard(shard).object.metrics(c.envelope));
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
}

const begun = async (c: Cluster, cell: string, names: string[], lease = c.uuid()): Promise<string> => {
  await c.clock.runUntil(begin(c, cell, lease, names));
  return lease;
};

const decided = (c: Cluster, cell: string, lease: string, outcome: "COMMITTED" | "ROLLED_BACK") =>
  c.clock.runUntil(decide(c, cell, lease, outcome));

describe("a ledger counts", () => {
  test("begins by their result, and by why they failed", async () => {
    const c = await Cluster.start({ shards: 1 });
    await decided(c, "1", await begun(c, "1", ["taken"]), "COMMITTED");
    await begun(c, "1", ["leased"]);
    await begun(c, "1", ["again"], "00000000-0000-4000-8000-00000000000a");
    await begun(c, "1", ["again"], "00000000-0000-4000-8000-00000000000a");
    await begun(c, "2", ["taken"]);
    await begun(c, "2", ["leased", "taken"]);
    await begun(c, "2", ["leased"]);
    const fenced = c.uuid();
    await decided(c, "2", fenced, "ROLLED_BACK");
    await begun(c, "2", ["free"], fenced);
    expect((await ledgerMetrics(c, "1")).begins).toEqual([
      { result: "granted", reason: "", count: 3 },
      { result: "repeated", reason: "", count: 1 },
    ]);
    const other = await ledgerMetrics(c, "2");
    expect(other.begins).toEqual([
      { result: "conflict", reason: "taken", count: 2 },
      { result: "conflict", reason: "leased", count: 1 },
      { result: "refused", reason: "LEASE_ROLLED_BACK", count: 1 },
    ]);
    expect(other.cellState).toBe("ACTIVE");
  });

  test("a begin whose shard cannot be reached as failed", async () => {
    const c = await Cluster.start({ shards: 1 });
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await begun(c, "1", ["lost"]);
    const { begins } = await ledgerMetrics(c);
    expect(begins).toEqual([{ result: "failed", reason: "UNAVAILABLE", count: 1 }]);
  });

  test("each decision once, by who made it, and those that it refuses", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = await begun(c, "1", ["a"]);
    await decided(c, "1", lease, "COMMITTED");
    await decided(c, "1", lease, "COMMITTED");
    await decided(c, "1", lease, "ROLLED_BACK");
    const other = await begun(c, "1", ["b"]);
    const caller = { role: "operator" as const, keyId: "k2", expiresAtMs: Number.MAX_SAFE_INTEGER };
    const request = decideRequest(c.envelope, other, "ROLLED_BACK", { caller });
    await c.clock.runUntil(c.ledger("1").object.decide(request));
    await decided(c, "1", c.uuid(), "ROLLED_BACK");
    await decided(c, "1", c.uuid(), "COMMITTED");
    expect(await ledgerMetrics(c)).toMatchObject({
      decisions: [
        { outcome: "COMMITTED", by: "cell", count: 1 },
        { outcome: "ROLLED_BACK", by: "operator", count: 1 },
      ],
      fences: 1,
      refusedDecisions: [
        { reason: "LEASE_COMMITTED", count: 1 },
        { reason: "NOT_FOUND", count: 1 },
      ],
    });
  });

  test("outstanding and stale leases, and the age of the oldest one", async () => {
    const c = await Cluster.start({ shards: 1, limits: { staleS: 60 } });
    expect(await ledgerMetrics(c)).toMatchObject({
      outstandingLeases: 0,
      staleLeases: 0,
      oldestLeaseMs: 0,
    });
    for (const name of ["a", "b"]) await begun(c, "1", [name]);
    const decidedLater = await begun(c, "1", ["c"]);
    await c.pass(30_000);
    await begun(c, "1", ["d"]);
    await c.pass(31_000);
    await decided(c, "1", decidedLater, "COMMITTED");
    const { oldestLeaseMs, ...counts } = await ledgerMetrics(c);
    expect(counts).toMatchObject({ outstandingLeases: 3, staleLeases: 2 });
    expect(counts.leaseAges.counts).toEqual([0, 0, 1, 2, 0, 0, 0]);
    expect(oldestLeaseMs).toBeGreaterThanOrEqual(60_000);
    expect(oldestLeaseMs).toBeLessThan(70_000);
  });

  test("decisions that a shard has not confirmed, and the age of the oldest one", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = await begun(c, "1", ["a"]);
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await decided(c, "1", lease, "COMMITTED");
    await c.pass(60_000);
    const { unappliedDecisions, oldestUnappliedMs } = await ledgerMetrics(c);
    expect(unappliedDecisions).toBe(1);
    expect(oldestUnappliedMs).toBeGreaterThanOrEqual(60_000);
    expect(oldestUnappliedMs).toBeLessThan(80_000);
    c.fate = () => "deliver";
    await c.pass(120_000);
    expect(await ledgerMetrics(c)).toMatchObject({ unappliedDecisions: 0, oldestUnappliedMs: 0 });
  });

  test("from 0 again in a new instance, which says when it started", async () => {
    const c = await Cluster.start({ shards: 1 });
    await begun(c, "1", ["a"]);
    await c.pass(5_000);
    const { startedAtMs } = await ledgerMetrics(c);
    c.ledger("1").restart();
    const after = await ledgerMetrics(c);
    expect(after.begins).toEqual([]);
    expect(after.outstandingLeases).toBe(1);
    expect(after.startedAtMs).toBeGreaterThanOrEqual(startedAtMs + 5_000);
  });
});

test("a new ledger shows usual counters as 0, so that their first event is an increase", async () => {
  const c = await Cluster.start({ shards: 1 });
  const { begins, decisions, refusedDecisions } = await allLedgerMetrics(c, "1");
  expect(begins).toEqual([
    { result: "granted", reason: "", count: 0 },
    { result: "conflict", reason: "taken", count: 0 },
    { result: "conflict", reason: "leased", count: 0 },
  ]);
  expect(decisions).toEqual([
    { outcome: "COMMITTED", by: "cell", count: 0 },
    { outcome: "ROLLED_BACK", by: "cell", count: 0 },
  ]);
  expect(refusedDecisions).toEqual([
    { reason: "LEASE_COMMITTED", count: 0 },
    { reason: "LEASE_ROLLED_BACK", count: 0 },
  ]);
});

describe("a shard counts", () => {
  test("messages, names that are looked up, sweeps and holds", async () => {
    const c = await Cluster.start({ shards: 1 });
    await begun(c, "1", ["a", "b"]);
    await begun(c, "2", ["a"]);
    const { object } = c.shard(0);
    const look = { ...c.envelope, keys: [keyOf("ROUTES", "x"), keyOf("ROUTES", "y")] };
    await c.clock.runUntil(object.lookup(look));
    const before = await shardMetrics(c);
    expect(before).toMatchObject({
      exchanges: 2,
      settles: 1,
      inquiries: 1,
      lookups: 2,
      recordReads: 0,
      sweeps: 0,
      holds: 2,
      holdsOfOneCell: 2,
      waitingReads: 0,
    });
    await c.pass(10_000);
    const after = await shardMetrics(c);
    expect(after.sweeps).toBeGreaterThan(0);
    expect(after.inquiries).toBeGreaterThan(before.inquiries);
  });
});

describe("the cost of a message for metrics", () => {
  test("no message, no transaction, and a row for each open lease", async () => {
    const c = await Cluster.start({ shards: 1 });
    for (let n = 0; n < 20; n += 1) await begun(c, "1", [`n${n}`]);
    const nodes = [c.ledger("1"), c.shard(0)];
    const before = {
      calls: c.calls.length,
      transactions: c.transactions(),
      rows: nodes.map(({ sql }) => sql.counts.rowsRead),
    };
    await ledgerMetrics(c);
    await shardMetrics(c);
    expect(c.calls.length).toBe(before.calls);
    expect(c.transactions()).toBe(before.transactions);
    const [ledger = 0, shard = 0] = nodes.map(
      ({ sql }, index) => sql.counts.rowsRead - (before.rows[index] ?? 0),
    );
    expect(ledger).toBeLessThanOrEqual(20);
    expect(shard).toBeLessThanOrEqual(2);
  });

  test("1,000 rows of leases at most, however many are open", async () => {
    const c = await Cluster.start({ shards: 1, limits: { staleS: 1 } });
    const { sql, database } = c.ledger("1");
    await begun(c, "1", ["first"]);
    insertLeases(database, { count: 1_500, prefix: "open-", pending: 1, state: "GRANTED" });
    await c.pass(2_000);
    const before = sql.counts.rowsRead;
    expect((await ledgerMetrics(c)).staleLeases).toBe(1_000);
    expect(sql.counts.rowsRead - before).toBeLessThanOrEqual(1_000);
  });
});

test("durations of begins, decisions and messages are counted on both sides", async () => {
  const c = await Cluster.start({ shards: 1 });
  c.fate = ({ method }) => (method === "exchange" ? "slow" : "deliver");
  await decided(c, "1", await begun(c, "1", ["a"]), "COMMITTED");
  await c.pass(1_000);
  const counted = ({ counts }: { counts: number[] }): number => counts.reduce((sum, each) => sum + each, 0);
  const ledger = await ledgerMetrics(c);
  const shard = await shardMetrics(c);
  expect(counted(ledger.beginDurations)).toBe(1);
  expect(counted(ledger.decisionDurations)).toBe(1);
  expect(counted(ledger.exchangeDurations)).toBe(2);
  expect(counted(shard.exchangeDurations)).toBe(2);
  // Slow messages are slow for the ledger that waits for them, and not for the shard that carries them out.
  expect(ledger.beginDurations.sumMs).toBeGreaterThan(0);
  expect(ledger.exchangeDurations.sumMs).toBeGreaterThan(shard.exchangeDurations.sumMs);
});
