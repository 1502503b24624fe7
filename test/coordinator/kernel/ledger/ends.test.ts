/**
 * Tests of what must have happened when a ledger answers, and what must not happen after an instance has
 * ended.
 */
import { expect, test } from "vitest";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { shardOf, shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import { begin, decide, isDecision, isPrepare, no, ok } from "../../../support/calls.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { beginRequest } from "../../../support/ops.ts";
import { bucketType } from "../../../support/types.ts";

function nameOn(c: Cluster, shard: number): string {
  for (let n = 0; ; n += 1)
    if (shardOf(bucketType("ROUTES"), `n${n}`, shardsOf(c.envelope.placement)) === shard) return `n${n}`;
}

/** Two shards: cell 2 owns a name on shard 0, and the ledger of cell 1 has been used. */
async function withTaken(): Promise<{ c: Cluster; taken: string; free: string }> {
  const c = await Cluster.start({ shards: 2 });
  const [taken, free] = [nameOn(c, 0), nameOn(c, 1)];
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "2", lease, [taken]));
  await c.clock.runUntil(decide(c, "2", lease, "COMMITTED"));
  await c.clock.runUntil(decide(c, "1", c.uuid(), "ROLLED_BACK"));
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
  return { c, taken, free };
}

test("[B6] a refusal is answered after its releases were acknowledged, however long they take", async () => {
  const { c, taken, free } = await withTaken();
  c.fate = (call) => (isDecision(call) ? "slow" : "deliver");
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), [taken, free]))).toEqual(no("ALREADY_EXISTS"));
  expect(c.holds().map(({ canonical }) => canonical)).toEqual(["warm-up"]);
});

test("[C3] a decision is answered when it is durable, and its shards are told at once", async () => {
  const { c, free } = await withTaken();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [free]));
  const sent: Call[] = [];
  c.fate = (call) => {
    sent.push(call);
    return "lose";
  };
  const release = c.ledger("1").sql.holdFlushes();
  let isAnswered = false;
  const decided = decide(c, "1", lease, "COMMITTED").finally(() => (isAnswered = true));
  await c.clock.pass(100);
  // The row is not durable yet (C2).
  expect([isAnswered, sent.length]).toEqual([false, 0]);
  release();
  expect(await c.clock.runUntil(decided)).toEqual(ok({ state: "COMMITTED" }));
  await c.clock.pass(1);
  expect(sent.map(({ to }) => to)).toEqual(["shard 1"]);
  expect(sent.every(isDecision)).toBe(true);
});

test("[B5] an instance that has ended sends nothing more, not even for other running begins", async () => {
  const { c, taken, free } = await withTaken();
  c.fate = (call) => (isPrepare(call) && call.to === "shard 1" ? "slow" : "deliver");
  const running = begin(c, "1", c.uuid(), [taken, free]);
  running.catch(() => {});
  await c.clock.pass(10);
  c.ledger("1").sql.failFlushes();
  const failing = decide(c, "1", c.uuid(), "ROLLED_BACK");
  await expect(c.clock.runUntil(failing)).rejects.toThrow("did not answer");
  const sent = c.messages("exchange").length;
  // Its release would be due now. Other begins will find the hold by an inquiry.
  await c.clock.pass(10_000);
  expect(c.messages("exchange")).toHaveLength(sent);
  expect(c.holds().map(({ canonical }) => canonical)).toContain(free);
});

test("[C7] a fenced begin is refused as rolled back, and asks no shard again", async () => {
  const { c, taken } = await withTaken();
  c.fate = (call) => (isPrepare(call) ? "slow" : "deliver");
  const lease = c.uuid();
  const running = begin(c, "1", lease, [taken]);
  await c.clock.pass(10);
  await c.clock.runUntil(decide(c, "1", lease, "ROLLED_BACK"));
  expect(await c.clock.runUntil(running)).toEqual(no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }));
  // The begin is fenced in the pause between two attempts, so there is no further attempt.
  c.fate = (call) => (call.from === "ledger 2" && isPrepare(call) ? "lose_answer" : "deliver");
  const blocker = begin(c, "2", c.uuid(), ["blocked"]);
  await c.clock.pass(10);
  const other = c.uuid();
  const waiting = begin(c, "1", other, ["blocked"]);
  await c.clock.pass(700);
  const tries = () =>
    c.messages("exchange").filter((call) => call.from === "ledger 1" && isPrepare(call)).length;
  const before = tries();
  expect(before).toBeGreaterThan(3);
  await Promise.all([decide(c, "1", other, "ROLLED_BACK"), c.clock.pass(0)]);
  expect(await c.clock.runUntil(waiting)).toEqual(no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }));
  expect(tries()).toBe(before);
  await c.clock.runUntil(blocker);
});

test("[M2] [B9] a hold whose ledger cannot be asked is a temporary conflict, without a retry", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "2", c.uuid(), ["ada"]));
  c.fate = (call) => (call.method === "settle" ? "lose" : "deliver");
  const sent = c.messages("exchange").length;
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["ada"]))).toEqual(
    no("ABORTED", { retryAfterMs: 1_000 }),
  );
  expect(c.messages("exchange")).toHaveLength(sent + 1);
});

test("[B2] a caller that joins a begin gets the first caller's result, with `created` false", async () => {
  const { c, taken, free } = await withTaken();
  const both = async (names: string[]) => {
    const lease = c.uuid();
    return c.clock.runUntil(Promise.all([begin(c, "1", lease, names), begin(c, "1", lease, names)]));
  };
  const [first, joined] = await both([free]);
  expect(joined).toEqual({ ok: true, value: { lease: first.ok && first.value.lease, created: false } });
  const [refused, same] = await both([taken]);
  expect(same).toEqual(refused);
  expect(same).toEqual(no("ALREADY_EXISTS"));
});

test("[M2] an unreachable shard is a retryable refusal with a retry time", async () => {
  const { c, free } = await withTaken();
  c.fate = (call) => (isPrepare(call) ? "lose" : "deliver");
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), [free]))).toEqual(
    no("UNAVAILABLE", { retryAfterMs: 1_000 }),
  );
});

test("[M3] a decision sets the alarm in its transaction, which wakes a ledger that died then", async () => {
  const { c, free } = await withTaken();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [free]));
  await c.pass(60_000);
  const ledger = c.ledger("1");
  ledger.alarmAtMs = undefined;
  ledger.sql.holdFlushes();
  void decide(c, "1", lease, "COMMITTED").catch(() => {});
  await c.clock.pass(1);
  expect(ledger.alarmAtMs).toBeGreaterThan(c.clock.now());
  ledger.restart();
  await c.pass(10_000);
  expect(c.claims().map(({ canonical }) => canonical)).toContain(free);
});

test("[C3] a decision waits for its pause between two deliveries, whoever wakes the ledger", async () => {
  const { c, free } = await withTaken();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [free]));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  await c.clock.pass(defaultLimits.exchangeTimeoutMs);
  const told = () => c.messages("exchange").filter(isDecision).length;
  const before = told();
  const poke = () => c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  for (let n = 0; n < 3; n += 1) await poke();
  // The first pause is at least a second, and half as long again with the jitter of these tests.
  c.clock.jump(1_499);
  await poke();
  expect(told()).toBe(before);
  c.clock.jump(1);
  await poke();
  expect(told()).toBe(before + 1);
});

test("[C3] [M3] a decision that this version cannot read is retried with the same pauses", async () => {
  const { c, free } = await withTaken();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [free]));
  c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  c.fate = () => "deliver";
  c.ledger("1").database.prepare(`UPDATE lease SET epochs = '{"0":9}' WHERE lease = ?`).run(lease);
  await c.pass(600_000);
  const tries = c.logged.filter(({ event }) => event === "decision_unreadable").length;
  expect(tries).toBeGreaterThan(5);
  expect(tries).toBeLessThan(30);
});

test("[C3] an error after the answer is logged, and the decision is delivered later", async () => {
  const { c, free } = await withTaken();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [free]));
  const ledger = c.ledger("1");
  let failures = 0;
  let { alarmAtMs } = ledger;
  // The alarm of the next try cannot be set.
  Object.defineProperty(ledger, "alarmAtMs", {
    configurable: true,
    get: () => alarmAtMs,
    set: (atMs: number | undefined) => {
      if (c.messages("exchange").some(isDecision) && failures++ === 0)
        throw new Error("the alarm cannot be set");
      alarmAtMs = atMs;
    },
  });
  c.calls.length = 0;
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toMatchObject({ ok: true });
  await c.clock.pass(10_000);
  expect(c.logged).toContainEqual({
    event: "delivery_failed",
    fields: { lease, error: "the alarm cannot be set" },
  });
  c.fate = () => "deliver";
  await c.pass(600_000);
  expect(c.holds().filter((hold) => hold.lease === lease)).toEqual([]);
});

test("[C7] the number of fences survives a restart", async () => {
  const c = await Cluster.start({ shards: 1, limits: { fences: 1 } });
  await c.clock.runUntil(decide(c, "1", c.uuid(), "ROLLED_BACK"));
  c.ledger("1").restart();
  expect(await c.clock.runUntil(decide(c, "1", c.uuid(), "ROLLED_BACK"))).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_FENCES" }),
  );
});

test("[M6] [B2] as many calls may join running begins as begins may run", async () => {
  const c = await Cluster.start({ shards: 1, limits: { concurrentBegins: 3 } });
  c.fate = () => "slow";
  const lease = c.uuid();
  const calls = Array.from({ length: 5 }, () =>
    c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])),
  );
  const answers = await c.clock.runUntil(Promise.all(calls));
  expect(answers.map((answer) => (answer.ok ? answer.value.created : answer.refusal.code))).toEqual([
    true,
    false,
    false,
    false,
    "UNAVAILABLE",
  ]);
  // They have ended, so others may join.
  const next = c.uuid();
  const later = [1, 2].map(() => c.ledger("1").object.begin(beginRequest(c.envelope, next, ["bob"])));
  expect((await c.clock.runUntil(Promise.all(later))).map((answer) => answer.ok)).toEqual([true, true]);
});
