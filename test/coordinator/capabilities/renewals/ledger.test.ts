/** Renewals of leases (C8): what they change, what they leave alone, and what a wrong clock does. */
import { expect, onTestFinished, test, vi } from "vitest";
import { idleMsOf } from "../../../../src/coordinator/kernel/ledger/idle-time.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { Lease } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { beginRequest, callerOf, decideRequest } from "../../../support/ops.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const begin = async (c: Cluster, name = "ada"): Promise<string> => {
  const lease = c.uuid();
  const begun = await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [name])));
  expect(begun.ok).toBe(true);
  return lease;
};

const renew = (c: Cluster, lease: string, reason = "an import"): Promise<Result<Lease>> =>
  c.clock.runUntil(c.ledger("1").object.renew({ ...c.envelope, caller: callerOf(), lease, reason }));

async function read(c: Cluster, lease: string): Promise<Lease> {
  const got = await c.clock.runUntil(
    c.ledger("1").object.getLease({ ...c.envelope, caller: callerOf(), lease }),
  );
  if (!got.ok) throw new Error(got.refusal.detail);
  return got.value;
}

const maintain = async (c: Cluster) => {
  const answer = await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
};

const staleLeases = async (c: Cluster): Promise<number> => {
  const metrics = await c.clock.runUntil(c.ledger("1").object.metrics(c.envelope));
  if (!metrics.ok) throw new Error(metrics.refusal.detail);
  return metrics.value.staleLeases;
};

test("[C8] a renewal costs one transaction, and no message to another part", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  const { counts } = c.ledger("1").sql;
  const [messages, { transactions }] = [c.calls.length, { ...counts }];
  await renew(c, lease);
  await renew(c, lease);
  expect(c.calls).toHaveLength(messages);
  expect(counts.transactions - transactions).toBe(1);
});

test("[C8] a renewal resets the time after which a lease is stale, and nothing else", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  const before = await read(c, lease);
  await c.pass(20 * MINUTE_MS);
  expect(await staleLeases(c)).toBe(1);
  expect((await maintain(c)).staleLeases).toBe(1);
  const position = (await c.clock.runUntil(c.ledger("1").object.status(c.envelope))) as Result<{
    position: number;
  }>;
  expect(await renew(c, lease)).toMatchObject({ ok: true, value: { state: "GRANTED" } });
  c.ledger("1").restart();
  const renewed = await read(c, lease);
  expect(renewed).toEqual({
    ...before,
    ageMs: renewed.ageMs,
    renewedAtMs: expect.any(Number) as unknown,
    renewalReason: "an import",
  });
  expect(renewed.ageMs).toBeGreaterThanOrEqual(20 * MINUTE_MS);
  expect(idleMsOf(renewed)).toBeLessThan(1_000);
  expect(await staleLeases(c)).toBe(0);
  expect((await maintain(c)).staleLeases).toBe(0);
  const after = (await c.clock.runUntil(c.ledger("1").object.status(c.envelope))) as typeof position;
  expect(after.ok && position.ok && after.value.position === position.value.position).toBe(true);
  await c.pass(20 * MINUTE_MS);
  expect(await staleLeases(c)).toBe(1);
  expect((await maintain(c)).staleLeases).toBe(1);
  expect((await read(c, lease)).state).toBe("GRANTED");
});

test("[C8] a frozen and a draining cell may renew", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  for (const state of ["FROZEN", "DRAINING"] as const) {
    const status = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
    if (!status.ok) throw new Error(status.refusal.detail);
    const { stateVersion } = status.value;
    await c.clock.runUntil(c.ledger("1").object.setState({ ...c.envelope, state, stateVersion }));
    expect(await renew(c, lease, state)).toMatchObject({ ok: true, value: { renewalReason: state } });
  }
});

test("[C8] a decided, fenced or unknown lease is not renewed", async () => {
  const c = await Cluster.start();
  const decide = (lease: string, outcome: "COMMITTED" | "ROLLED_BACK") =>
    c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, outcome)));
  const [committed, rolledBack, fenced] = [await begin(c, "a"), await begin(c, "b"), c.uuid()];
  await decide(committed, "COMMITTED");
  await decide(rolledBack, "ROLLED_BACK");
  await decide(fenced, "ROLLED_BACK");
  const refusedWith = async (lease: string) => {
    const answer = await renew(c, lease);
    return answer.ok ? "renewed" : [answer.refusal.code, answer.refusal.reason];
  };
  expect(await refusedWith(committed)).toEqual(["FAILED_PRECONDITION", "LEASE_COMMITTED"]);
  expect(await refusedWith(rolledBack)).toEqual(["FAILED_PRECONDITION", "LEASE_ROLLED_BACK"]);
  expect(await refusedWith(fenced)).toEqual(["FAILED_PRECONDITION", "LEASE_ROLLED_BACK"]);
  expect(await refusedWith(c.uuid())).toEqual(["NOT_FOUND", undefined]);
});

test("[C8] a renewal soon after another one with the same reason is not written", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  await renew(c, lease);
  const { renewedAtMs: first = 0 } = await read(c, lease);
  await c.pass(500);
  await renew(c, lease);
  expect((await read(c, lease)).renewedAtMs).toBe(first);
  await renew(c, lease, "another");
  expect((await read(c, lease)).renewedAtMs).toBeGreaterThan(first);
});

test("[C8] [M4] a renewal by a clock that was ahead hides no lease for long", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  c.clock.jump(HOUR_MS);
  await renew(c, lease);
  c.clock.jump(-HOUR_MS);
  // An instance that starts now reads the time of the renewal from its rows.
  c.ledger("1").restart();
  await maintain(c);
  expect((await read(c, lease)).renewedAtMs).toBeLessThanOrEqual(c.clock.now());
  await c.pass(20 * MINUTE_MS);
  expect(idleMsOf(await read(c, lease))).toBeGreaterThanOrEqual(20 * MINUTE_MS);
});

test("[C8] a ledger finds renewals without reading the batches of its leases", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  const all = vi.spyOn(NodeSql.prototype, "all");
  onTestFinished(() => all.mockRestore());
  c.clock.jump(HOUR_MS);
  await renew(c, lease);
  c.clock.jump(-HOUR_MS);
  c.ledger("1").restart();
  await renew(c, lease);
  await maintain(c);
  const searches = all.mock.calls
    .map(([statement, ...bindings]) => ({ statement, bindings }))
    .filter(({ statement }) => statement.includes("decided = 0 AND renewed_at_ms"));
  expect(searches.length).toBeGreaterThanOrEqual(2);
  for (const { statement, bindings } of searches) {
    const { database } = c.ledger("1");
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all(...bindings);
    expect(JSON.stringify(plan)).toContain("INDEX lease_by_renewal");
  }
});
