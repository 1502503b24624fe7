/** Tests of begins that wait for leased names (B11). */
import { expect, test } from "vitest";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { BeginAnswer } from "../../../../src/coordinator/kernel/messages.ts";
import type { Limits } from "../../../../src/common/limits.ts";
import { shardOf, shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import { privateField, privatePath } from "../../../support/private-fields.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf, operator, type OpSpec } from "../../../support/ops.ts";
import { bucketType } from "../../../support/types.ts";

const granted = expect.objectContaining({ ok: true }) as unknown;
const no = (code: string, more: object = {}): unknown => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const WAIT_MS = 20_000;
const CELLS = ["1", "2", "3", "4"];

/** A begin whose answer can be looked at while it runs. */
interface Begun {
  cell: string;
  lease: string;
  reply: Promise<Result<BeginAnswer>>;
  answer: () => Result<BeginAnswer> | undefined;
}

class Fixture {
  readonly c: Cluster;

  constructor(c: Cluster) {
    this.c = c;
  }

  begin(cell: string, specs: (OpSpec | string)[], waitMs = WAIT_MS, lease = this.c.uuid()): Begun {
    const more = waitMs === 0 ? {} : { waitMs };
    const reply = this.c.ledger(cell).object.begin(beginRequest(this.c.envelope, lease, specs, more));
    let answer: Result<BeginAnswer> | undefined;
    // The promise of an instance that has ended never settles.
    void reply.then((value) => (answer = value));
    return { cell, lease, reply, answer: () => answer };
  }

  /** A lease of these names. */
  async leased(cell: string, names: string[]): Promise<Begun> {
    const begun = this.begin(cell, names, 0);
    expect(await this.c.clock.runUntil(begun.reply)).toEqual(granted);
    return begun;
  }

  async decide({ cell, lease }: Begun, outcome: "COMMITTED" | "ROLLED_BACK" = "ROLLED_BACK"): Promise<void> {
    const reply = this.c.ledger(cell).object.decide(decideRequest(this.c.envelope, lease, outcome));
    expect(await this.c.clock.runUntil(reply)).toEqual(granted);
  }

  async setState(cell: string, state: "FROZEN" | "ACTIVE"): Promise<void> {
    const { object } = this.c.ledger(cell);
    const status = await this.c.clock.runUntil(object.status(this.c.envelope));
    const stateVersion = status.ok ? status.value.stateVersion : 0;
    const message = { ...this.c.envelope, operator, state, stateVersion };
    expect(await this.c.clock.runUntil(object.setState(message))).toEqual(granted);
  }

  /** The begins that wait, as the shards see it. */
  async waiting(): Promise<number> {
    let sum = 0;
    for (let shard = 0; shard < shardsOf(this.c.envelope.placement); shard += 1) {
      const metrics = await this.c.clock.runUntil(this.c.shard(shard).object.metrics(this.c.envelope));
      sum += metrics.ok ? metrics.value.waitingBegins : 0;
    }
    return sum;
  }
}

async function start(limits: Partial<Limits> = {}, shards = 1): Promise<Fixture> {
  return new Fixture(await Cluster.start({ cells: CELLS, shards, limits }));
}

function nameOn(f: Fixture, shard: number): string {
  const shards = shardsOf(f.c.envelope.placement);
  for (let n = 0; ; n += 1) if (shardOf(bucketType("ROUTES"), `n${n}`, shards) === shard) return `n${n}`;
}

test("[B11] a begin waits for a leased name, and is granted as soon as the name is free", async () => {
  const f = await start();
  const first = await f.leased("1", ["ada"]);
  const second = f.begin("2", ["ada"]);
  await f.c.pass(12_345);
  expect(second.answer()).toBeUndefined();
  await f.decide(first);
  await f.c.pass(0);
  await f.c.clock.turn();
  expect(await f.c.clock.runUntil(second.reply)).toEqual(granted);
  expect(await f.waiting()).toBe(0);
});

test("[B11] a begin that waits costs few messages, and no transaction of its own", async () => {
  const f = await start();
  const first = await f.leased("1", ["ada"]);
  const waited = f.begin("2", ["ada"]);
  await f.c.pass(100);
  const before = { messages: f.c.calls.length, transactions: f.c.transactions() };
  const waitMs = 15_000;
  await f.c.pass(waitMs);
  // The shard tells the change feed that the first lease is granted (F3).
  expect(f.c.transactions()).toBe(before.transactions + 1);
  // A message to the shard each `exchangeTimeoutMs`, and the shard's question about the hold.
  const messages = f.c.calls.length - before.messages;
  expect(messages).toBeLessThanOrEqual(2 * (waitMs / f.c.limits.exchangeTimeoutMs) + 4);
  expect(f.c.calls.slice(before.messages).map(({ method }) => method)).not.toContain("exchange");
  await f.decide(first);
  expect(await f.c.clock.runUntil(waited.reply)).toEqual(granted);
});

test("[B11] the name goes to those who wait, across cells, in the order in which they came", async () => {
  const f = await start();
  let owner = await f.leased("1", ["ada"]);
  const cells = ["3", "2", "4", "1", "3"];
  const waiting: Begun[] = [];
  for (const cell of cells) {
    waiting.push(f.begin(cell, ["ada"]));
    await f.c.pass(10);
  }
  for (const [index, next] of waiting.entries()) {
    await f.decide(owner);
    expect(await f.c.clock.runUntil(next.reply)).toEqual(granted);
    await f.c.pass(100);
    for (const later of waiting.slice(index + 1)) expect(later.answer()).toBeUndefined();
    owner = next;
  }
});

test("[B11] no later begin overtakes those who wait, neither with nor without a wait", async () => {
  const f = await start({ decisionWaitMs: 5 });
  const owner = await f.leased("1", ["ada"]);
  // The answers to the first in the queue are lost, so it does not learn of the offer.
  f.c.fate = ({ from, method }) => (from === "ledger 2" && method === "wait" ? "lose_answer" : "deliver");
  const first = f.begin("2", ["ada"]);
  await f.c.pass(10);
  // While this message is on its way, others wait for the next one.
  f.c.fate = ({ method }) => (method === "exchange" ? "slow" : "deliver");
  const before = f.begin("1", ["bob"], 0);
  await f.decide(owner);
  f.c.fate = () => "deliver";
  // It shares the message with the decision that frees the name.
  const sameMessage = f.begin("1", ["ada"], 0);
  expect(await f.c.clock.runUntil(sameMessage.reply)).toEqual(
    no("ABORTED", { retryAfterMs: 1_000, conflicts: [expect.objectContaining({ owner: "other" })] }),
  );
  expect(f.c.messages("exchange").at(-1)?.message).toMatchObject({ decisions: [{}], prepares: [{}] });
  await f.decide(before);
  const later = f.begin("3", ["ada"]);
  await f.c.pass(f.c.limits.offerMs / 2);
  expect(later.answer()).toBeUndefined();
  expect(f.c.holds()).toEqual([]);
  // The offer ends. From then on, the other one is the first.
  expect(await f.c.clock.runUntil(later.reply)).toEqual(granted);
  expect(first.answer()).toBeUndefined();
  await f.decide(later);
  expect(await f.c.clock.runUntil(first.reply)).toEqual(granted);
});

test("[B11] when the time is over, the begin is refused as usual, and has no place any more", async () => {
  const f = await start();
  await f.leased("1", ["ada"]);
  const startedMs = f.c.clock.now();
  const second = f.begin("2", ["ada"], 4_500);
  expect(await f.c.clock.runUntil(second.reply)).toEqual(
    no("ABORTED", {
      retryAfterMs: 1_000,
      conflicts: [{ list: "creates", index: 0, kind: "leased", owner: "other", retryAfterMs: 1_000 }],
    }),
  );
  expect(f.c.clock.now() - startedMs).toBe(4_500);
  expect(await f.waiting()).toBe(0);
});

test("[B11] a name that is committed refuses those who wait for it, one after the other", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const waiting = ["2", "3", "2"].map((cell) => f.begin(cell, ["ada"]));
  await f.c.pass(10);
  const beforeMs = f.c.clock.now();
  await f.decide(owner, "COMMITTED");
  for (const { reply } of waiting) expect(await f.c.clock.runUntil(reply)).toEqual(no("ALREADY_EXISTS"));
  expect(f.c.clock.now()).toBe(beforeMs);
  expect(await f.waiting()).toBe(0);
});

test("[B11] however many begins of a dead ledger wait, they delay the others by one offer", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  for (let n = 0; n < 5; n += 1) f.begin("2", ["ada"]);
  await f.c.pass(10);
  const living = f.begin("3", ["ada"]);
  await f.c.pass(10);
  f.c.ledger("2").restart();
  f.c.fate = ({ from }) => (from === "ledger 2" ? "lose" : "deliver");
  await f.decide(owner);
  const freedMs = f.c.clock.now();
  expect(await f.c.clock.runUntil(living.reply)).toEqual(granted);
  expect(f.c.clock.now() - freedMs).toBe(f.c.limits.offerMs);
  // Later, the dead begins delay nobody.
  const next = f.begin("4", ["ada"]);
  await f.c.pass(10);
  await f.decide(living);
  const againMs = f.c.clock.now();
  expect(await f.c.clock.runUntil(next.reply)).toEqual(granted);
  expect(f.c.clock.now()).toBe(againMs);
  // And their places end.
  await f.c.pass(20_000);
  expect(await f.waiting()).toBe(0);
});

test("[B11] a begin whose ledger missed an offer of another name keeps its place", async () => {
  const f = await start();
  const ada = await f.leased("1", ["ada"]);
  const bob = await f.leased("1", ["bob"]);
  f.c.fate = ({ from, method, message }) =>
    from === "ledger 2" &&
    method === "wait" &&
    (message as { key: { canonical: string } }).key.canonical === "ada"
      ? "lose_answer"
      : "deliver";
  f.begin("2", ["ada"]);
  const keeps = f.begin("2", ["bob"]);
  await f.c.pass(10);
  const later = f.begin("3", ["bob"]);
  await f.c.pass(10);
  await f.decide(ada);
  await f.c.pass(f.c.limits.offerMs + 10);
  await f.decide(bob);
  expect(await f.c.clock.runUntil(keeps.reply)).toEqual(granted);
  expect(later.answer()).toBeUndefined();
});

test("[B11] [C7] a rollback of a begin that waits ends it as refused, and frees its place", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const second = f.begin("2", ["ada"]);
  await f.c.pass(10);
  const third = f.begin("3", ["ada"]);
  await f.c.pass(10);
  const beforeMs = f.c.clock.now();
  await f.decide(second);
  expect(await f.c.clock.runUntil(second.reply)).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
  );
  await f.decide(owner);
  expect(await f.c.clock.runUntil(third.reply)).toEqual(granted);
  expect(f.c.clock.now()).toBe(beforeMs);
});

test("[B11] a begin that waits ends when its cell is frozen or its key revoked", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const frozen = f.begin("2", ["ada"]);
  const revoked = f.begin("3", ["ada"]);
  await f.c.pass(10);
  const last = f.begin("4", ["ada"]);
  await f.c.pass(10);
  const beforeMs = f.c.clock.now();
  await f.setState("2", "FROZEN");
  expect(await f.c.clock.runUntil(frozen.reply)).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  const key = { keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER };
  await f.c.clock.runUntil(f.c.ledger("3").object.revoke({ ...f.c.envelope, operator, ...key }));
  expect(await f.c.clock.runUntil(revoked.reply)).toEqual(no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }));
  await f.decide(owner);
  expect(await f.c.clock.runUntil(last.reply)).toEqual(granted);
  expect(f.c.clock.now()).toBe(beforeMs);
});

test("[B11] a shard that restarts has no queue, and the begins queue again", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const second = f.begin("2", ["ada"]);
  await f.c.pass(100);
  f.c.shard(0).restart();
  expect(await f.waiting()).toBe(0);
  await f.c.pass(2 * f.c.limits.exchangeTimeoutMs);
  expect(await f.waiting()).toBe(1);
  await f.decide(owner);
  expect(await f.c.clock.runUntil(second.reply)).toEqual(granted);
});

test("[B11] the first in the queue finds out about a lease that ended without a message", async () => {
  const f = await start({ sweepAfterMs: 600_000 });
  f.c.fate = ({ from, method, message }) =>
    from === "ledger 1" && method === "exchange" && (message as { decisions: unknown[] }).decisions.length > 0
      ? "lose"
      : "deliver";
  const owner = await f.leased("1", ["ada"]);
  const second = f.begin("2", ["ada"]);
  await f.c.pass(10);
  void f.c.ledger("1").object.decide(decideRequest(f.c.envelope, owner.lease, "ROLLED_BACK"));
  await f.c.clock.pass(f.c.limits.exchangeTimeoutMs + 10);
  expect(second.answer()).toEqual(granted);
});

test("[B11] and so does the next one, if the ledger of the first is dead", async () => {
  const f = await start({ sweepAfterMs: 600_000 });
  const owner = await f.leased("1", ["ada"]);
  f.begin("2", ["ada"]);
  await f.c.pass(10);
  const third = f.begin("3", ["ada"]);
  await f.c.pass(10);
  f.c.fate = ({ from, method }) =>
    from === "ledger 2" || (from === "ledger 1" && method === "exchange") ? "lose" : "deliver";
  void f.c.ledger("1").object.decide(decideRequest(f.c.envelope, owner.lease, "ROLLED_BACK"));
  const { exchangeTimeoutMs, offerMs } = f.c.limits;
  await f.c.clock.pass(2 * exchangeTimeoutMs + offerMs);
  expect(third.answer()).toEqual(granted);
});

test("[B11] [B6] a begin holds nothing while it waits, so begins of the same names get through", async () => {
  const f = await start({}, 2);
  const [x, y] = [nameOn(f, 0), nameOn(f, 1)];
  const ownerOfX = await f.leased("1", [x]);
  const ownerOfY = await f.leased("1", [y]);
  const both = ["2", "3", "4"].map((cell) => f.begin(cell, cell === "3" ? [y, x] : [x, y]));
  await f.c.pass(1_000);
  expect(f.c.holds().map(({ cell }) => cell)).toEqual(["1", "1"]);
  // The other name is free for others meanwhile.
  await f.decide(ownerOfY);
  const other = await f.leased("1", [y]);
  await f.decide(ownerOfX);
  await f.c.pass(1_000);
  expect(f.c.holds().map(({ cell }) => cell)).toEqual(["1"]);
  await f.decide(other);
  const beforeMs = f.c.clock.now();
  for (let left = both; left.length > 0;) {
    const next = await f.c.clock.runUntil(
      Promise.race(left.map(async (begun) => [begun, await begun.reply] as const)),
    );
    expect(next[1]).toEqual(granted);
    await f.decide(next[0]);
    left = left.filter((begun) => begun !== next[0]);
  }
  expect(f.c.clock.now() - beforeMs).toBeLessThan(2 * f.c.limits.offerMs);
});

test("[B11] a begin that can't take an offer declines it, and the next one gets the name", async () => {
  const f = await start({}, 2);
  const [x, y] = [nameOn(f, 0), nameOn(f, 1)];
  const ownerOfY = await f.leased("1", [y]);
  const first = f.begin("2", [x, y]);
  await f.c.pass(10);
  const ownerOfX = await f.leased("1", [x]);
  const second = f.begin("3", [y]);
  await f.c.pass(10);
  const beforeMs = f.c.clock.now();
  await f.decide(ownerOfY);
  expect(await f.c.clock.runUntil(second.reply)).toEqual(granted);
  expect(f.c.clock.now()).toBe(beforeMs);
  // The first one waits for the other name now, and then for this one again.
  await f.decide(ownerOfX);
  await f.c.pass(1_000);
  expect(first.answer()).toBeUndefined();
  await f.decide(second);
  expect(await f.c.clock.runUntil(first.reply)).toEqual(granted);
});

test("[B11] two begins that have offers of each other's names both get through", async () => {
  const f = await start({}, 2);
  const [x, y] = [nameOn(f, 0), nameOn(f, 1)];
  const ownerOfY = await f.leased("1", [y]);
  const waitsForY = f.begin("2", [x, y]);
  await f.c.pass(10);
  const ownerOfX = await f.leased("1", [x]);
  const waitsForX = f.begin("3", [x, y]);
  await f.c.pass(10);
  await Promise.all([f.decide(ownerOfX), f.decide(ownerOfY)]);
  await f.c.pass(1_000);
  const both = [waitsForX, waitsForY];
  const won = both.find(({ answer }) => answer()?.ok === true);
  const lost = both.find((each) => each !== won);
  if (won === undefined || lost === undefined) throw new Error("none has got the names");
  await f.decide(won);
  expect(await f.c.clock.runUntil(lost.reply)).toEqual(granted);
});

test("[B11] [B2] a begin ends once all of its calls have given up", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const { object } = f.c.ledger("2");
  const lease = f.c.uuid();
  const request = beginRequest(f.c.envelope, lease, ["ada"], { waitMs: WAIT_MS });
  const calls = ["one", "two"].map((call) => object.begin({ ...request, call }));
  const giveUp = (call: string) => f.c.clock.runUntil(object.giveUp({ ...f.c.envelope, lease, call }));
  await f.c.pass(10);
  await giveUp("one");
  // A copy, and a call of another begin.
  await giveUp("one");
  await giveUp("three");
  await f.c.pass(10);
  expect(await f.waiting()).toBe(1);
  const beforeMs = f.c.clock.now();
  await giveUp("two");
  for (const call of calls) expect(await f.c.clock.runUntil(call)).toMatchObject({ ok: false });
  expect(f.c.clock.now()).toBe(beforeMs);
  expect(await f.waiting()).toBe(0);
  await f.decide(owner);
  await f.leased("3", ["ada"]);
});

test("[B11] a call may be given up before it arrives", async () => {
  const f = await start({ concurrentBegins: 2 });
  const owner = await f.leased("1", ["ada"]);
  const { object } = f.c.ledger("2");
  const lease = f.c.uuid();
  const request = beginRequest(f.c.envelope, lease, ["ada"], { waitMs: WAIT_MS });
  const giveUp = (call: string) => f.c.clock.runUntil(object.giveUp({ ...f.c.envelope, lease, call }));
  await giveUp("one");
  const beforeMs = f.c.clock.now();
  // The lease may still be granted to another call, so nothing final is said about it.
  expect(await f.c.clock.runUntil(object.begin({ ...request, call: "one" }))).toEqual(no("UNAVAILABLE"));
  expect(f.c.clock.now()).toBe(beforeMs);
  expect(await f.waiting()).toBe(0);
  // Another call under the same UUID waits. Of the calls that never arrive, only the last ones are kept.
  for (const call of ["two", "three", "four"]) await giveUp(call);
  const second = object.begin({ ...request, call: "two" });
  await f.c.pass(10);
  expect(await f.waiting()).toBe(1);
  await f.decide(owner);
  expect(await f.c.clock.runUntil(second)).toEqual(granted);
});

test("[B11] the time in a queue doesn't count for the deadline of the begin", async () => {
  const f = await start({ beginDeadlineMs: 1_000 });
  const owner = await f.leased("1", ["ada"]);
  const second = f.begin("2", ["ada"]);
  await f.c.pass(5_000);
  f.c.fate = ({ method }) => (method === "exchange" ? "slow" : "deliver");
  await f.decide(owner);
  expect(await f.c.clock.runUntil(second.reply)).toEqual(granted);
});

test("[B11] [B2] a second call joins a begin that waits", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const lease = f.c.uuid();
  const first = f.begin("2", ["ada"], WAIT_MS, lease);
  await f.c.pass(6_000);
  const again = f.begin("2", ["ada"], WAIT_MS, lease);
  await f.c.pass(10);
  await f.decide(owner);
  expect(await f.c.clock.runUntil(first.reply)).toMatchObject({ ok: true, value: { created: true } });
  expect(await f.c.clock.runUntil(again.reply)).toMatchObject({ ok: true, value: { created: false } });
});

test.each<[what: string, limits: Partial<Limits>, cells: string[]]>([
  ["of a name", { nameQueue: 2 }, ["2", "3", "4"]],
  ["of a shard", { shardQueue: 2 }, ["2", "3", "4"]],
  ["of a cell's begins that wait", { waitingBegins: 2 }, ["2", "2", "2"]],
  ["of the bytes of a cell's begins that wait", { beginBytes: 160 }, ["2", "2", "2"]],
])("[B11] [M6] a begin that finds no room in the queue %s is refused at once", async (_, limits, cells) => {
  const f = await start(limits);
  const owner = await f.leased("1", ["ada"]);
  const begun: Begun[] = [];
  for (const cell of cells) {
    begun.push(f.begin(cell, ["ada"]));
    await f.c.pass(10);
  }
  expect(begun.map(({ answer }) => answer())).toEqual([
    undefined,
    undefined,
    no("ABORTED", { retryAfterMs: 1_000 }),
  ]);
  expect(await f.waiting()).toBe(2);
  await f.decide(owner);
  expect(await f.c.clock.runUntil(begun[0]?.reply ?? Promise.reject(new Error("no begin")))).toEqual(granted);
});

test("[B11] begins that wait leave room for others of their cell", async () => {
  const f = await start({ concurrentBegins: 4, waitingBegins: 2 });
  await f.leased("1", ["ada"]);
  const waiting = [f.begin("2", ["ada"]), f.begin("2", ["ada"])];
  await f.c.pass(10);
  expect(waiting.map(({ answer }) => answer())).toEqual([undefined, undefined]);
  await f.leased("2", ["bob"]);
});

test("[B11] a late copy of a begin's message takes a place that soon ends", async () => {
  const f = await start();
  const owner = await f.leased("1", ["ada"]);
  const key = keyOf("ROUTES", "ada");
  void f.c.shard(0).object.wait({ ...f.c.envelope, cell: "2", lease: f.c.uuid(), key });
  await f.c.pass(10);
  expect(await f.waiting()).toBe(1);
  await f.decide(owner);
  await f.c.pass(3_000 + 2 * 4_000 + 1_000);
  expect(await f.waiting()).toBe(0);
  const queues = privatePath(f.c.shard(0).object, "#part.queues.current") as object;
  expect([privateField(queues, "#queues"), privateField(queues, "#byCell")]).toEqual([new Map(), new Map()]);
});

test("[N1] [B11] a waiting begin gets a name at once, also after a restart of the other ledger", async () => {
  const f = await start({ decisionWaitMs: 5, sweepAfterMs: 600_000 });
  // Begins come so often that decisions wait for them.
  for (let n = 0; n < 20; n += 1) {
    await f.decide(await f.leased("1", [`warm-${n}`]), "COMMITTED");
    await f.c.pass(200);
  }
  const holder = await f.leased("1", ["taken"]);
  const waiting = f.begin("2", ["taken"]);
  await f.c.clock.pass(100);
  f.c.ledger("1").restart();
  for (let n = 0; n < 20; n += 1) await f.leased("1", [`n${n}`]);
  await f.decide(holder);
  const decidedAtMs = f.c.clock.now();
  expect(await f.c.clock.runUntil(waiting.reply)).toEqual(granted);
  expect(f.c.clock.now() - decidedAtMs).toBeLessThan(100);
});

test("[M6] [B11] a waiting begin that finds no room leaves its turn to the next one", async () => {
  const f = await start({ heldNames: 4 });
  const owner = await f.leased("1", ["a1"]);
  const first = f.begin("2", ["a1", "b1"]);
  await f.c.pass(1_000);
  const second = f.begin("3", ["a1"]);
  await f.c.pass(1_000);
  await f.leased("1", ["a2"]);
  await f.leased("3", ["c1"]);
  // After the rollback, cell 2 may hold one more name, and the begin that waits longest needs two.
  await f.leased("2", ["b2"]);
  await f.decide(owner);
  expect(await f.c.clock.runUntil(first.reply)).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "SHARD_HOLDS_FULL" }),
  );
  expect(await f.c.clock.runUntil(second.reply)).toEqual(granted);
});
