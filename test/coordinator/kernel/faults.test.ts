/**
 * The protocol under faults of messages, shards, ledgers and disks. A title begins with the rules that the
 * test proves.
 */
import { expect, test } from "vitest";
import type { Decision, Exchange, Inquiry, Prepare } from "../../../src/coordinator/kernel/messages.ts";
import { shardOf, shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import { begin, decide, grantedLeases, isDecision, isPrepare, no, ok } from "../../support/calls.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, keyOf } from "../../support/ops.ts";
import { bucketType } from "../../support/types.ts";

function lastPrepare(c: Cluster): Prepare {
  const prepare = c
    .messages("exchange")
    .flatMap((call) => (call.message as Exchange).prepares)
    .at(-1);
  if (prepare === undefined) throw new Error("no prepare was sent");
  return prepare;
}

/** Names on different shards, one per shard. */
function nameOn(c: Cluster, shard: number, nth = 0): string {
  for (let n = 0, seen = 0; ; n += 1) {
    if (shardOf(bucketType("ROUTES"), `n${n}`, shardsOf(c.envelope.placement)) === shard && seen++ === nth)
      return `n${n}`;
  }
}
const spread = (c: Cluster): string[] =>
  Array.from({ length: shardsOf(c.envelope.placement) }, (_, shard) => nameOn(c, shard));

test("[B6] [M2] a lost prepare makes the begin unknown and releases its holds; a replay works", async () => {
  const c = await Cluster.start();
  c.fate = (call) => (isPrepare(call) && call.to === "shard 2" ? "lose" : "deliver");
  const lease = c.uuid();
  const result = await c.clock.runUntil(begin(c, "1", lease, spread(c)));
  expect(result).toEqual(no("UNAVAILABLE"));
  expect(c.holds()).toEqual([]);
  c.fate = () => "deliver";
  expect(await c.clock.runUntil(begin(c, "1", lease, spread(c)))).toEqual(ok({ created: true }));
});

test("[B6] [B8] a prepare without an answer is released; the sweep finds a lost release", async () => {
  const c = await Cluster.start();
  c.fate = (call) =>
    call.method !== "exchange" || call.to !== "shard 1"
      ? "deliver"
      : isPrepare(call)
        ? "lose_answer"
        : "lose";
  const lease = c.uuid();
  expect(await c.clock.runUntil(begin(c, "1", lease, spread(c)))).toEqual(no("UNAVAILABLE"));
  expect(c.holds()).toHaveLength(1);
  c.fate = () => "deliver";
  await c.pass(20_000);
  expect(c.holds()).toEqual([]);
});

test("[B6] a prepare that waits for room is not sent after its begin has given up", async () => {
  const c = await Cluster.start({ limits: { fanOut: 1, beginDeadlineMs: 1_000 } });
  c.fate = (call) => (call.to === "shard 0" ? "lose" : "deliver");
  const blocking = begin(c, "1", c.uuid(), [nameOn(c, 0)]);
  const lease = c.uuid();
  expect(await c.clock.runUntil(begin(c, "1", lease, [nameOn(c, 1)]))).toEqual(no("DEADLINE_EXCEEDED"));
  await c.clock.runUntil(blocking);
  await c.pass(20_000);
  const sent = c
    .messages("exchange")
    .flatMap((call) => (call.message as Exchange).prepares.map((prepare) => prepare.lease));
  expect(sent).not.toContain(lease);
});

test("[B3] [B8] a prepare that arrives too late is never granted, and its hold is cleared", async () => {
  const c = await Cluster.start();
  c.fate = (call) => (isPrepare(call) && call.to === "shard 0" ? "late" : "deliver");
  const lease = c.uuid();
  expect(await c.clock.runUntil(begin(c, "1", lease, spread(c)))).toEqual(no("UNAVAILABLE"));
  c.fate = () => "deliver";
  await c.clock.pass(60_001);
  expect(c.holds()).toHaveLength(1);
  // A begin that meets the hold finds out at once that no lease owns it.
  expect(await c.clock.runUntil(begin(c, "2", c.uuid(), [nameOn(c, 0)]))).toEqual(ok({ created: true }));
  expect(c.holds()).toEqual([expect.objectContaining({ cell: "2" })]);
});

test("[B8] a begin that meets the hold of a committed lease applies the decision and retries", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
  expect(c.holds()).toHaveLength(1);
  expect(await c.clock.runUntil(begin(c, "2", c.uuid(), ["ada"]))).toEqual(no("ALREADY_EXISTS"));
  expect(c.holds()).toEqual([]);
  expect(c.claims()).toEqual([expect.objectContaining({ cell: "1" })]);
});

test("[B8] a begin that meets the hold of a rolled back lease drops it and gets the name", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada", "bob"]));
  c.fate = (call) => (isDecision(call) && call.from === "ledger 1" ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", lease, "ROLLED_BACK"));
  expect(await c.clock.runUntil(begin(c, "2", c.uuid(), ["ada"]))).toEqual(ok({ created: true }));
});

test("[B8] an inquiry never releases the hold of a granted lease, however old it is", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, spread(c)));
  await c.pass(3_600_000);
  expect(c.holds()).toHaveLength(4);
  expect(await c.clock.runUntil(begin(c, "2", c.uuid(), spread(c)))).toEqual(no("ABORTED"));
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
});

test("[B8] the sweep inquires about an old lease less and less often", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["ada"]));
  await c.pass(3_600_000);
  const asked = c.messages("inquire").length;
  expect(asked).toBeGreaterThan(10);
  expect(asked).toBeLessThan(100);
});

test("[B7] a ledger that dies before the grant leaves no lease, and the id can be replayed", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  c.fate = (call) => (isPrepare(call) ? "lose_answer" : "deliver");
  const lost = begin(c, "1", lease, spread(c));
  lost.catch(() => {});
  await c.clock.pass(100);
  expect(c.holds()).toHaveLength(4);
  c.ledger("1").restart();
  c.fate = () => "deliver";
  // The holds have the old incarnation, so the new instance answers `gone`.
  expect(await c.clock.runUntil(begin(c, "1", lease, spread(c)))).toEqual(ok({ created: true }));
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
  expect(c.claims()).toHaveLength(4);
});

test("[B3] every instance raises the incarnation before its first attempt", async () => {
  const c = await Cluster.start();
  const seen: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    await c.clock.runUntil(begin(c, "1", c.uuid(), [`n${round}`]));
    c.ledger("1").restart();
  }
  for (const call of c.messages("exchange")) {
    for (const { incarnation, counter } of (call.message as Exchange).prepares)
      seen.push(`${incarnation}.${counter}`);
  }
  expect(seen).toHaveLength(3);
  expect(new Set(seen).size).toBe(3);
  expect(seen.every((attempt) => attempt.endsWith(".1"))).toBe(true);
});

test("[B8] a replaced instance does not answer about attempts of a newer one", async () => {
  const c = await Cluster.start();
  const first = c.uuid();
  await c.clock.runUntil(begin(c, "1", first, ["ada"]));
  const zombie = c.ledger("1").restart();
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["bob"]));
  const { incarnation } = lastPrepare(c);
  const question = { lease: c.uuid(), incarnation, counter: 1, epoch: 1 };
  const inquiry: Inquiry = { ...c.envelope, shard: 0, questions: [question] };
  await expect(zombie.inquire(inquiry)).rejects.toThrow();
  expect(await c.clock.runUntil(c.ledger("1").object.inquire(inquiry))).toEqual(ok({ verdicts: ["gone"] }));
});

test("[B5] an instance whose grant may be durable sends nothing more; the row decides", async () => {
  const c = await Cluster.start();
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
  const lease = c.uuid();
  const node = c.ledger("1");
  const work = begin(c, "1", lease, ["ada", "bob"]);
  work.catch(() => {});
  node.sql.failFlushes();
  await c.clock.pass(200);
  await expect(work).rejects.toThrow();
  expect(node.halted).toBe(true);
  const sent = c.messages("exchange").length;
  await c.pass(1_000);
  expect(c.messages("exchange").length).toBe(sent);
  expect(c.holds().filter((hold) => hold.lease === lease)).toHaveLength(2);
  node.restart();
  // The write was durable, so the replay finds the lease granted.
  expect(await c.clock.runUntil(begin(c, "1", lease, ["ada", "bob"]))).toEqual(ok({ created: false }));
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
});

test("[C2] a ledger that dies after its decision is durable delivers it after the restart", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, spread(c)));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  void decide(c, "1", lease, "COMMITTED").catch(() => {});
  await c.clock.pass(100);
  c.ledger("1").restart();
  c.fate = () => "deliver";
  expect(c.holds()).toHaveLength(4);
  await c.pass(5_000);
  expect(c.holds()).toEqual([]);
  expect(c.claims()).toHaveLength(4);
});

test("[C3] a commit is answered although a shard cannot be reached, and the alarm delivers it", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, spread(c)));
  c.fate = (call) => (call.to === "shard 3" ? "lose" : "deliver");
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
  expect(c.holds()).toHaveLength(1);
  const tries = (): number =>
    c.messages("exchange").filter((call) => call.to === "shard 3" && isDecision(call)).length;
  await c.pass(3_600_000);
  // The backoff is capped: the ledger keeps retrying, but not too often.
  expect(tries()).toBeGreaterThan(20);
  expect(tries()).toBeLessThan(300);
  c.fate = () => "deliver";
  await c.pass(130_000);
  expect(c.holds()).toEqual([]);
  expect(c.claims()).toHaveLength(4);
});

test("[C2] a repeated or late decision changes nothing that came after it", async () => {
  const c = await Cluster.start();
  const first = c.uuid();
  await c.clock.runUntil(begin(c, "1", first, ["ada"]));
  c.fate = (call) => (isDecision(call) ? "twice" : "deliver");
  await c.clock.runUntil(decide(c, "1", first, "COMMITTED"));
  c.fate = () => "deliver";
  // The name is destroyed by another lease and taken by another cell before the copy arrives.
  const destroy = c.uuid();
  await c.clock.runUntil(
    c
      .ledger("1")
      .object.begin(
        beginRequest(c.envelope, destroy, [{ kind: "destroy", value: "ada", subject: null, source: null }]),
      ),
  );
  await c.clock.runUntil(decide(c, "1", destroy, "COMMITTED"));
  await c.pass(40_000);
  expect(c.claims()).toEqual([]);
});

test("[B4] [C2] a repeated prepare leaves a hold that no decision but only an inquiry clears", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  c.fate = (call) => (isPrepare(call) ? "twice" : "deliver");
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  c.fate = () => "deliver";
  const destroy = c.uuid();
  await c.clock.runUntil(
    c
      .ledger("1")
      .object.begin(
        beginRequest(c.envelope, destroy, [{ kind: "destroy", value: "ada", subject: null, source: null }]),
      ),
  );
  await c.clock.runUntil(decide(c, "1", destroy, "COMMITTED"));
  await c.clock.pass(31_000);
  // The copy of the prepare finds the name free and holds it with a new epoch.
  expect(c.holds()).toHaveLength(1);
  await c.pass(20_000);
  expect(c.holds()).toEqual([]);
  expect(c.claims()).toEqual([]);
});

test("[R2] a lookup never shows an ungranted hold, and is unavailable if it cannot find out", async () => {
  const c = await Cluster.start({ shards: 1 });
  const look = () => c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "ada")] });
  c.fate = (call) => (isPrepare(call) ? "lose_answer" : "deliver");
  const running = begin(c, "1", c.uuid(), ["ada"]);
  await c.clock.pass(100);
  expect(c.holds()).toHaveLength(1);
  const [found] = await Promise.all([look(), c.clock.pass(10)]);
  expect(found).toEqual(ok({ found: [{ kind: "none" }] }));
  c.fate = (call) => (call.method === "inquire" ? "lose" : isPrepare(call) ? "lose_answer" : "deliver");
  const [unknown] = await Promise.all([look(), c.clock.pass(1_500)]);
  expect(unknown).toEqual(ok({ found: [{ kind: "unknown" }] }));
  await c.clock.runUntil(running);
});

test("[R2] a lookup costs no message, or one if it meets a hold", async () => {
  const c = await Cluster.start({ shards: 1 });
  const look = () =>
    c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "ada")] }));
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["bob"]));
  const before = c.calls.length;
  await look();
  expect(c.calls.length).toBe(before);
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  const held = c.calls.length;
  await look();
  await look();
  expect(c.calls.length).toBe(held + 2);
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  const active = c.calls.length;
  await look();
  expect(c.calls.length).toBe(active);
});

test("[B9] of two begins that would block each other in parallel one wins, and none is `taken`", async () => {
  const c = await Cluster.start();
  const results = await c.clock.runUntil(
    Promise.all([begin(c, "1", c.uuid(), spread(c)), begin(c, "2", c.uuid(), spread(c).toReversed())]),
  );
  expect(results.filter((result) => result.ok)).toHaveLength(1);
  expect(results.find((result) => !result.ok)).toEqual(no("ABORTED"));
});

test("[B9] [B6] a begin that meets only running begins ends by its deadline, as ABORTED", async () => {
  const c = await Cluster.start({ shards: 1, limits: { beginDeadlineMs: 2_000 } });
  const blocked = c.uuid();
  c.fate = (call) => (call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : "deliver");
  const blocker = begin(c, "1", blocked, ["ada"]);
  await c.clock.pass(50);
  const result = await c.clock.runUntil(begin(c, "2", c.uuid(), ["ada"]));
  expect(["ABORTED"]).toContain(result.ok ? "granted" : result.refusal.code);
  await c.clock.runUntil(blocker);
});

test("[N1] what waits for a busy shard shares one message and its transactions", async () => {
  const c = await Cluster.start({ shards: 2 });
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up", "warm-up-2", "warm-up-3"]));
  const before = { messages: c.messages("exchange").length, transactions: c.transactions() };
  const leases = Array.from({ length: 200 }, () => c.uuid());
  const results = await c.clock.runUntil(
    Promise.all(leases.map((lease, index) => begin(c, "1", lease, [`a${index}`, `b${index}`]))),
  );
  expect(results.every((result) => result.ok)).toBe(true);
  const decided = await c.clock.runUntil(
    Promise.all(leases.map((lease) => decide(c, "1", lease, "COMMITTED"))),
  );
  expect(decided.every((result) => result.ok)).toBe(true);
  expect(c.messages("exchange").length - before.messages).toBeLessThan(40);
  expect(c.transactions() - before.transactions).toBeLessThan(40);
});

test("[N1] a slow shard delays only the leases that touch it", async () => {
  const c = await Cluster.start();
  c.fate = (call) => (call.to === "shard 0" ? "lose" : "deliver");
  const slow = begin(c, "1", c.uuid(), [nameOn(c, 0)]);
  const started = c.clock.now();
  for (let round = 0; round < 3; round += 1) {
    const lease = c.uuid();
    expect(await c.clock.runUntil(begin(c, "1", lease, [nameOn(c, 1), nameOn(c, 2)]))).toEqual(
      ok({ created: true }),
    );
    expect(await c.clock.runUntil(decide(c, "1", lease, "ROLLED_BACK"))).toEqual(
      ok({ state: "ROLLED_BACK" }),
    );
  }
  expect(c.clock.now() - started).toBeLessThan(1_000);
  await c.clock.runUntil(slow);
});

test("[N2] leases in one message succeed or fail independently", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "2", c.uuid(), ["n3"]));
  const results = await c.clock.runUntil(
    Promise.all(Array.from({ length: 8 }, (_, index) => begin(c, "1", c.uuid(), [`n${index}`]))),
  );
  expect(results.map((result) => result.ok)).toEqual([true, true, true, false, true, true, true, true]);
});

test("[N2] a shard applies the decisions of a message before its prepares", async () => {
  const c = await Cluster.start({ shards: 1 });
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  const [, second] = await c.clock.runUntil(
    Promise.all([decide(c, "1", lease, "ROLLED_BACK"), begin(c, "1", c.uuid(), ["ada"])]),
  );
  expect(second).toEqual(ok({ created: true }));
});

test("[M3] a lost alarm is set again by a restart, by new work and by the cron", async () => {
  const c = await Cluster.start();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, spread(c)));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  for (const node of c.nodes) node.alarmAtMs = undefined;
  c.fate = () => "deliver";
  await c.clock.pass(60_000);
  expect(c.holds()).toHaveLength(4);
  const maintained = await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  expect(maintained).toEqual(ok({ unapplied: 0 }));
  expect(c.holds()).toEqual([]);
  const other = c.uuid();
  await c.clock.runUntil(begin(c, "1", other, ["eve"]));
  for (const node of c.nodes) node.alarmAtMs = undefined;
  for (const node of c.nodes) {
    node.restart();
    await c.clock.runUntil<unknown>(
      "ping" in node.object ? node.object.ping(c.envelope) : node.object.status(c.envelope),
    );
  }
  expect(
    c.nodes.filter((node) => node.alarmAtMs !== undefined && node.alarmAtMs > c.clock.now()),
  ).toHaveLength(1);
});

test("[M4] a clock that jumps back changes no order of leases and makes none look old", async () => {
  const c = await Cluster.start();
  const leases: string[] = [];
  for (const jumpMs of [0, 5_000, -60_000, 1]) {
    c.clock.jump(jumpMs);
    const lease = c.uuid();
    leases.push(lease);
    await c.clock.runUntil(begin(c, "1", lease, [`n${leases.length}`]));
  }
  const granted = await grantedLeases(c, "1");
  expect(granted.map(({ lease }) => lease)).toEqual(leases);
  expect(granted.every(({ ageMs }) => ageMs >= 0)).toBe(true);
});

test("[M6] begins over the cell's limits are refused with a retry time, decisions never", async () => {
  const c = await Cluster.start({ limits: { concurrentBegins: 2, outstandingLeases: 3, fences: 1 } });
  const parallel = await c.clock.runUntil(
    Promise.all(["a", "b", "c"].map((name) => begin(c, "1", c.uuid(), [name]))),
  );
  expect(parallel[2]).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_BEGINS", retryAfterMs: expect.any(Number) as unknown }),
  );
  const lease = c.uuid();
  expect(await c.clock.runUntil(begin(c, "1", lease, ["c"]))).toEqual(ok({ created: true }));
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["d"]))).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_LEASES" }),
  );
  c.ledger("1").restart();
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["d"]))).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_LEASES" }),
  );
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["d"]))).toEqual(ok({ created: true }));
  expect(await c.clock.runUntil(decide(c, "1", c.uuid(), "ROLLED_BACK"))).toEqual(
    ok({ state: "ROLLED_BACK" }),
  );
  expect(await c.clock.runUntil(decide(c, "1", c.uuid(), "ROLLED_BACK"))).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_FENCES" }),
  );
});

test("[S1] an outcome is forgotten when it is applied and old", async () => {
  const c = await Cluster.start();
  const [lease, fence] = [c.uuid(), c.uuid()];
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  await c.clock.runUntil(decide(c, "1", fence, "ROLLED_BACK"));
  const ledger = c.ledger("1").object;
  const maintain = async () => {
    const answer = await c.clock.runUntil(ledger.maintain(c.envelope));
    return answer.ok ? answer.value.pruned : -1;
  };
  expect(await maintain()).toBe(0);
  await c.clock.pass(3_600_000 + 60_000);
  expect(await maintain()).toBe(1);
  await c.clock.pass(93_500_000);
  expect(await maintain()).toBe(0);
  await c.clock.pass(100_000);
  expect(await maintain()).toBe(1);
  expect(await c.clock.runUntil(begin(c, "1", fence, ["zoe"]))).toEqual(ok({ created: true }));
  const late = c.uuid();
  await c.clock.runUntil(begin(c, "1", late, ["eve"]));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", late, "COMMITTED"));
  await c.clock.pass(8 * 86_400_000);
  // It is not applied anywhere, so it is kept whatever its age.
  expect(await maintain()).toBe(0);
  c.fate = () => "deliver";
  await c.clock.pass(5_000);
  expect(await maintain()).toBe(1);
});

test("[B4] [C2] a decision touches only holds of its own cell, lease, attempt and epoch", async () => {
  const c = await Cluster.start({ shards: 1 });
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  const { incarnation, counter } = lastPrepare(c);
  const right: Decision = {
    cell: "1",
    lease,
    incarnation,
    counter,
    epoch: 1,
    outcome: "COMMITTED",
    keys: [keyOf("ROUTES", "ada")],
  };
  const wrong: Partial<Decision>[] = [
    { cell: "2" },
    { lease: c.uuid() },
    { incarnation: 9 },
    { counter: counter + 1 },
    { epoch: 2 },
  ];
  const last = c.messages("exchange").at(-1)?.message as Exchange;
  for (const difference of wrong) {
    for (const outcome of ["COMMITTED", "ROLLED_BACK"] as const) {
      await c.clock.runUntil(
        c.shard(0).object.exchange({
          ...last,
          decisions: [{ ...right, ...difference, outcome }],
          prepares: [],
        }),
      );
    }
  }
  expect([c.holds().length, c.claims().length]).toEqual([1, 0]);
  await c.clock.runUntil(c.shard(0).object.exchange({ ...last, decisions: [right], prepares: [] }));
  expect([c.holds().length, c.claims().length]).toEqual([0, 1]);
});

test("[C7] [B5] a rollback during a begin fences it, or rolls back the granted lease", async () => {
  const ends = new Set<string>();
  for (let delay = 0; delay < 40; delay += 1) {
    const c = await Cluster.start();
    await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
    const lease = c.uuid();
    const running = begin(c, "1", lease, spread(c));
    for (let turn = 0; turn < delay; turn += 1) await c.clock.turn();
    const [begun, rolled] = await c.clock.runUntil(
      Promise.all([running, decide(c, "1", lease, "ROLLED_BACK")]),
    );
    expect(rolled).toEqual(ok({ state: "ROLLED_BACK" }));
    ends.add(begun.ok ? "granted" : (begun.refusal.reason ?? begun.refusal.code));
    expect(c.holds().filter((hold) => hold.lease === lease)).toEqual([]);
    expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(
      no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
    );
  }
  expect(ends).toEqual(new Set(["granted", "LEASE_ROLLED_BACK"]));
});

test("[B9] two begins that reach two shards in opposite order do not block each other forever", async () => {
  const c = await Cluster.start({ shards: 2 });
  c.fate = (call) =>
    isPrepare(call) && (call.from === "ledger 1") === (call.to === "shard 1") ? "slow" : "deliver";
  const results = await c.clock.runUntil(
    Promise.all([begin(c, "1", c.uuid(), spread(c)), begin(c, "2", c.uuid(), spread(c))]),
  );
  expect(results.filter((result) => result.ok)).toHaveLength(1);
});

test("[B3] [B6] a prepare that waits for a busy shard is not sent after its begin has ended", async () => {
  const c = await Cluster.start({ shards: 1, limits: { beginDeadlineMs: 1_000 } });
  c.fate = (call) => (call.method === "exchange" ? "lose" : "deliver");
  const first = begin(c, "1", c.uuid(), ["ada"]);
  await c.clock.pass(100);
  const late = c.uuid();
  expect(await c.clock.runUntil(begin(c, "1", late, ["bob"]))).toEqual(no("DEADLINE_EXCEEDED"));
  await c.clock.runUntil(first);
  c.fate = () => "deliver";
  await c.pass(20_000);
  const sent = c
    .messages("exchange")
    .flatMap((call) => (call.message as Exchange).prepares.map(({ lease }) => lease));
  expect(sent).not.toContain(late);
});

test("[S1] [M4] positions stay above all earlier ones, after a prune and a clock reset", async () => {
  const c = await Cluster.start({ limits: { lateBeginS: 1 } });
  const fence = c.uuid();
  await c.clock.runUntil(decide(c, "1", fence, "ROLLED_BACK"));
  const status = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  const through = status.ok ? status.value.position : 0;
  await c.clock.pass(10_000);
  expect(await c.clock.runUntil(c.ledger("1").object.maintain(c.envelope))).toEqual(ok({ pruned: 1 }));
  c.clock.jump(-3_600_000);
  c.ledger("1").restart();
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  const later = c.ledger("1").sql.all("SELECT lease FROM lease WHERE created_position > ?", through);
  expect(later).toEqual([{ lease }]);
});

test("[C3] [M3] [S2] a restart finds every unapplied decision, and only those with a batch", async () => {
  const c = await Cluster.start({ limits: { sweepAfterMs: 600_000 } });
  const [stuck, fine] = [c.uuid(), c.uuid()];
  await c.clock.runUntil(begin(c, "1", stuck, [nameOn(c, 0)]));
  await c.clock.runUntil(begin(c, "1", fine, [nameOn(c, 1)]));
  c.fate = (call) => (call.to === "shard 0" ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", stuck, "COMMITTED"));
  await c.clock.runUntil(decide(c, "1", fine, "COMMITTED"));
  await c.pass(60_000);
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toEqual(
    ok({ unappliedDecisions: 1 }),
  );
  c.ledger("1").restart();
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toEqual(
    ok({ unappliedDecisions: 1 }),
  );
  c.fate = () => "deliver";
  await c.pass(10_000);
  expect(c.claims()).toHaveLength(2);
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toEqual(
    ok({ unappliedDecisions: 0 }),
  );
});

test("[B8] no answer is based on rows that are not durable yet", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
  const ledger = c.ledger("1");
  const lease = c.uuid();
  const running = begin(c, "1", lease, ["ada"]);
  const release = ledger.sql.holdFlushes();
  await c.clock.pass(50);
  const caller = { role: "cell" as const, keyId: "k", expiresAtMs: Number.MAX_SAFE_INTEGER };
  const { incarnation, counter } = lastPrepare(c);
  const calls = [
    running,
    ledger.object.inquire({
      ...c.envelope,
      shard: 0,
      questions: [{ lease, incarnation, counter, epoch: 2 }],
    }),
    ledger.object.getLease({ ...c.envelope, caller, lease }),
    begin(c, "1", lease, ["ada"]),
  ];
  let answered = 0;
  for (const call of calls) void call.finally(() => (answered += 1));
  await c.clock.pass(50);
  expect(answered).toBe(0);
  release();
  const answers = await c.clock.runUntil(Promise.all(calls));
  expect(answers.every((answer) => answer.ok)).toBe(true);
  expect(answers[1]).toEqual(ok({ verdicts: ["granted"] }));
});

test("[C2] a decision that is not durable yet is not sent, not even by the alarm", async () => {
  const c = await Cluster.start({ shards: 1 });
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, ["ada"]));
  const release = c.ledger("1").sql.holdFlushes();
  const decided = decide(c, "1", lease, "COMMITTED");
  await c.clock.pass(6_000);
  const alarm = c.ledger("1").object.alarm();
  await c.clock.pass(6_000);
  expect(c.messages("exchange").filter(isDecision)).toEqual([]);
  expect(c.claims()).toEqual([]);
  release();
  expect(await c.clock.runUntil(decided)).toEqual(ok({ state: "COMMITTED" }));
  await c.clock.runUntil(alarm);
  expect(c.claims()).toHaveLength(1);
});

test("[C3] a decision that this version cannot read does not block the others", async () => {
  const c = await Cluster.start({ shards: 1 });
  const [bad, good] = [c.uuid(), c.uuid()];
  await c.clock.runUntil(begin(c, "1", bad, ["ada"]));
  await c.clock.runUntil(begin(c, "1", good, ["bob"]));
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", bad, "COMMITTED"));
  await c.clock.runUntil(decide(c, "1", good, "COMMITTED"));
  c.ledger("1").database.prepare(`UPDATE lease SET epochs = '{"0":9}' WHERE lease = ?`).run(bad);
  c.fate = () => "deliver";
  c.ledger("1").restart();
  await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  await c.pass(30_000);
  expect(c.claims().map(({ canonical }) => canonical)).toContain("bob");
  expect(c.logged.some(({ event }) => event === "decision_unreadable")).toBe(true);
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toEqual(
    ok({ unappliedDecisions: 1 }),
  );
});

test("[M6] fenced begins count toward the limit until their work has ended", async () => {
  const c = await Cluster.start({ shards: 1, limits: { concurrentBegins: 2 } });
  c.fate = (call) => (isPrepare(call) ? "lose" : "deliver");
  const works: Promise<unknown>[] = [];
  for (let n = 0; n < 2; n += 1) {
    const lease = c.uuid();
    works.push(begin(c, "1", lease, [`n${n}`]));
    await c.clock.pass(20);
    works.push(decide(c, "1", lease, "ROLLED_BACK"));
    await c.clock.pass(20);
  }
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["more"]))).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_BEGINS" }),
  );
  await c.clock.runUntil(Promise.all(works));
  c.fate = () => "deliver";
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), ["more"]))).toEqual(ok({ created: true }));
});

test("[N1] begins that meet the holds of a dead ledger do not delay others", async () => {
  const c = await Cluster.start();
  const held = Array.from({ length: 60 }, (_, n) => nameOn(c, 0, n));
  await c.clock.runUntil(begin(c, "2", c.uuid(), held));
  const lease = c.uuid();
  await c.clock.runUntil(begin(c, "1", lease, [nameOn(c, 3)]));
  c.fate = (call) => (call.to === "ledger 2" ? "lose" : "deliver");
  const colliding = held.map((name) => begin(c, "1", c.uuid(), [name]));
  await c.clock.pass(20);
  const started = c.clock.now();
  expect(await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"))).toEqual(ok({ state: "COMMITTED" }));
  expect(c.claims()).toHaveLength(1);
  expect(await c.clock.runUntil(begin(c, "1", c.uuid(), [nameOn(c, 2)]))).toEqual(ok({ created: true }));
  expect(c.clock.now() - started).toBeLessThan(500);
  await c.clock.runUntil(Promise.all(colliding));
});

test("[M3] a flush that hangs does not make the alarm ring all the time", async () => {
  const c = await Cluster.start({ limits: { sweepAfterMs: 600_000 } });
  const [stuck, hanging] = [c.uuid(), c.uuid()];
  await c.clock.runUntil(begin(c, "1", stuck, [nameOn(c, 0)]));
  await c.clock.runUntil(begin(c, "1", hanging, [nameOn(c, 1)]));
  c.fate = (call) => (call.to === "shard 0" ? "lose" : "deliver");
  await c.clock.runUntil(decide(c, "1", stuck, "COMMITTED"));
  await c.pass(60_000);
  const ledger = c.ledger("1");
  const release = ledger.sql.holdFlushes();
  const decided = decide(c, "1", hanging, "COMMITTED");
  let rings = 0;
  for (let ms = 0; ms < 20_000; ms += 1) {
    await c.clock.turn();
    c.clock.jump(1);
    if (ledger.alarmAtMs === undefined || ledger.alarmAtMs > c.clock.now()) continue;
    ledger.alarmAtMs = undefined;
    rings += 1;
    void ledger.object.alarm();
  }
  expect(rings).toBeLessThan(20);
  release();
  await c.clock.runUntil(decided);
});
