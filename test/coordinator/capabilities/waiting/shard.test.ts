/**
 * Tests of the queue of a name by itself. test/coordinator/capabilities/waiting/ledger.test.ts has those with
 * ledgers.
 */
import { expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../../src/common/limits.ts";
import type { WaitState } from "../../../../src/coordinator/capabilities/waiting/messages.ts";
import { NameQueues } from "../../../../src/coordinator/capabilities/waiting/shard.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { opsOf } from "../../../support/ops.ts";

const [op] = opsOf("hash1.shards1.canonical1", ["ada"]);
if (op === undefined) throw new Error("there is one op");
const key = { type: op.type, canonical: op.canonical };
const lease = (cell: string) => ({ cell, lease: `lease-${cell}` });
const prepareOf = (cell: string) => ({
  ...lease(cell),
  incarnation: 1,
  counter: 1,
  ops: [op],
  allowMissing: false,
});

/** A queue of one name, which is held. */
class Fixture {
  readonly clock = new VirtualClock();
  readonly queues: NameQueues;
  readonly limits: Limits;
  /** The last answer to each cell. */
  readonly answers = new Map<string, WaitState>();

  constructor(limits: Partial<Limits> = {}) {
    this.limits = { ...defaultLimits, ...limits };
    this.queues = new NameQueues(this.clock, this.limits);
  }

  wait(cell: string, isHeld = true): void {
    this.answers.delete(cell);
    void this.queues.wait({ ...lease(cell), key }, isHeld).then((state) => this.answers.set(cell, state));
  }

  /** Reports changes as a transaction does. */
  async commit(work: () => void): Promise<Record<string, WaitState>> {
    work();
    this.queues.committed();
    return this.now();
  }

  async now(): Promise<Record<string, WaitState>> {
    await this.clock.turn();
    return Object.fromEntries(this.answers);
  }

  free(): Promise<Record<string, WaitState>> {
    return this.commit(() => this.queues.holdChanged(key, false));
  }
}

test("[B11] a free name is offered to the first begin, and is kept from the others", async () => {
  const f = new Fixture();
  for (const cell of ["1", "2", "3"]) f.wait(cell);
  expect(await f.now()).toEqual({});
  expect(await f.free()).toEqual({ 1: "offered" });
  expect(f.queues.firstBefore(key, lease("1"))).toBeUndefined();
  expect(f.queues.firstBefore(key, lease("2"))).toMatchObject(lease("1"));
  expect(f.queues.firstBefore(key, lease("4"))).toMatchObject(lease("1"));
  // The first one gets the name, and later gives it up.
  const taken = await f.commit(() => {
    f.queues.holdChanged(key, true);
    f.queues.prepared(prepareOf("1"), true);
  });
  expect(taken).toEqual({ 1: "offered" });
  expect(await f.free()).toEqual({ 1: "offered", 2: "offered" });
});

test("[B11] an offer that is refused, left or not taken goes to the next one", async () => {
  const f = new Fixture();
  for (const cell of ["1", "2", "3", "4"]) f.wait(cell);
  await f.free();
  const refused = await f.commit(() => f.queues.prepared(prepareOf("1"), false));
  expect(refused).toEqual({ 1: "offered", 2: "offered" });
  f.queues.leave({ ...lease("2"), key });
  expect(await f.now()).toEqual({ 1: "offered", 2: "offered", 3: "offered" });
  await f.clock.pass(f.limits.offerMs - 1);
  expect(f.answers.get("4")).toBeUndefined();
  await f.clock.pass(1);
  expect(f.answers.get("4")).toBe("offered");
  expect(f.queues.counts).toEqual({ waitingBegins: 1, missedOffers: 1, refusedWaits: 0 });
});

test("[B11] a prepare of a begin that only waits does not end its place", async () => {
  const f = new Fixture();
  f.wait("1");
  f.wait("2");
  await f.commit(() => f.queues.prepared(prepareOf("2"), false));
  expect(f.queues.counts.waitingBegins).toBe(2);
});

test("[B11] a place is kept between two messages for a limited time", async () => {
  const f = new Fixture();
  f.wait("1");
  await f.clock.pass(f.limits.exchangeTimeoutMs);
  expect(await f.now()).toEqual({ 1: "waiting" });
  f.wait("2");
  // The first one still is the first, also while the shard has no message of it.
  await f.free();
  expect(f.answers.get("2")).toBeUndefined();
  f.wait("1", false);
  expect(await f.now()).toMatchObject({ 1: "offered" });
});

test("[B11] a begin that sends no message any more loses its place", async () => {
  const f = new Fixture();
  f.wait("1");
  const { exchangeTimeoutMs, inquiryTimeoutMs } = f.limits;
  await f.clock.pass(exchangeTimeoutMs + 2 * (exchangeTimeoutMs + inquiryTimeoutMs) - 1);
  expect(f.queues.counts.waitingBegins).toBe(1);
  await f.clock.pass(1);
  expect(f.queues.counts.waitingBegins).toBe(0);
});

test("[B11] a name that is free when a begin comes is offered at once", async () => {
  const f = new Fixture();
  f.wait("1", false);
  expect(await f.now()).toEqual({ 1: "offered" });
});

test("[B11] a copy of a message ends the wait of the earlier one, and keeps the place", async () => {
  const f = new Fixture();
  const first = f.queues.wait({ ...lease("1"), key }, true);
  f.wait("2");
  f.wait("1");
  expect(await first).toBe("waiting");
  expect(await f.free()).toEqual({ 1: "offered" });
});

test.each([{ nameQueue: 1 }, { shardQueue: 1 }])(
  "[B11] [M6] a full queue takes no other begin: %o",
  async (limits) => {
    const f = new Fixture(limits);
    f.wait("1");
    f.wait("2");
    expect(await f.now()).toEqual({ 2: "full" });
    expect(f.queues.counts).toEqual({ waitingBegins: 1, missedOffers: 0, refusedWaits: 1 });
  },
);

test("[B11] [M6] one cell gets at most half of the places, for a name and in all", async () => {
  const f = new Fixture({ nameQueue: 4, shardQueue: 6 });
  const states: WaitState[] = [];
  const wait = (cell: string, n: number, name = key): void =>
    void f.queues.wait({ cell, lease: `lease-${n}`, key: name }, true).then((state) => states.push(state));
  for (let n = 0; n < 3; n += 1) wait("1", n);
  await f.clock.turn();
  expect(states).toEqual(["full"]);
  const other = { ...key, canonical: "grace" };
  for (let n = 3; n < 5; n += 1) wait("1", n, other);
  await f.clock.turn();
  expect(states).toEqual(["full", "full"]);
  wait("2", 5);
  await f.clock.turn();
  expect(states).toEqual(["full", "full"]);
});
