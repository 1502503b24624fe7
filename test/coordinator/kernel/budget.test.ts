/**
 * The cost of each call in messages and durable transactions (docs/reference/limits.md). Tests count, they
 * never measure time.
 */
import { expect, test } from "vitest";
import { RIDE_WAIT_MS } from "../../../src/coordinator/kernel/ledger/shard-link.ts";
import { defaultLimits, type Limits } from "../../../src/common/limits.ts";
import { shardOf, shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf } from "../../support/ops.ts";
import { bucketType } from "../../support/types.ts";

interface Cost {
  messages: number;
  transactions: number;
}

async function costOf(c: Cluster, work: () => Promise<unknown>): Promise<Cost> {
  const before = { messages: c.calls.length, transactions: c.transactions() };
  await c.clock.runUntil(work());
  return { messages: c.calls.length - before.messages, transactions: c.transactions() - before.transactions };
}

/**
 * A cluster in which every object has been used, because the first use confirms placements and raises the
 * incarnation.
 */
async function warm(shards: number, limits: Partial<Limits> = {}): Promise<Cluster> {
  const c = await Cluster.start({ shards, limits });
  for (const cell of ["1", "2"]) {
    const lease = c.uuid();
    await c.clock.runUntil(
      c.ledger(cell).object.begin(
        beginRequest(
          c.envelope,
          lease,
          Array.from({ length: 64 }, (_, n) => `warm-${cell}-${n}`),
        ),
      ),
    );
    await c.clock.runUntil(c.ledger(cell).object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
  }
  await c.pass(c.limits.decisionWaitMs);
  return c;
}

const names = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const shardsTouched = (c: Cluster, values: readonly string[]): number =>
  new Set(values.map((value) => shardOf(bucketType("ROUTES"), value, shardsOf(c.envelope.placement)))).size;

test.each([1, 2, 4, 16])(
  "a begin of %i claims on s shards costs s messages and s + 1 transactions; so does its commit",
  async (count) => {
    const c = await warm(16);
    const values = names(count, "cost");
    const s = shardsTouched(c, values);
    const lease = c.uuid();
    // The budget in limits.md also counts the call to the ledger itself.
    expect(
      await costOf(c, () => c.ledger("1").object.begin(beginRequest(c.envelope, lease, values))),
    ).toEqual({ messages: s, transactions: s + 1 });
    expect(
      await costOf(c, () => c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED"))),
    ).toEqual({
      messages: s,
      transactions: s + 1,
    });
  },
);

test.each(["COMMITTED", "ROLLED_BACK"] as const)(
  "[N1] a decision (%s) that is followed by a begin on the same shard costs no message of its own",
  async (outcome) => {
    const c = await warm(1, { decisionWaitMs: defaultLimits.decisionWaitMs });
    const cycles = 20;
    const before = { messages: c.calls.length, transactions: c.transactions() };
    for (let n = 0; n < cycles; n += 1) {
      const lease = c.uuid();
      const { object } = c.ledger("1");
      await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, [`n${n}`])));
      await c.clock.runUntil(object.decide(decideRequest(c.envelope, lease, outcome)));
    }
    // Each shard's message has a begin and the decision before it, and the ledger writes twice. The last
    // decision is not sent yet.
    expect(c.calls.length - before.messages).toBe(cycles);
    expect(c.transactions() - before.transactions).toBe(3 * cycles);
    await c.pass(RIDE_WAIT_MS);
    expect(c.calls.length - before.messages).toBe(cycles + 1);
  },
);

test("[N1] [B8] a lookup that meets a decided hold costs one inquiry, and the next one nothing", async () => {
  const c = await warm(1, { decisionWaitMs: RIDE_WAIT_MS });
  const lease = c.uuid();
  const { object } = c.ledger("1");
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, ["ada"])));
  await c.clock.runUntil(object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  const look = () => c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "ada")] });
  // The shard carries the decision out when it hears of it.
  expect(await costOf(c, look)).toEqual({ messages: 1, transactions: 1 });
  expect(await costOf(c, look)).toEqual({ messages: 0, transactions: 0 });
  // The decision itself changes nothing any more (C2).
  expect(await costOf(c, () => c.pass(RIDE_WAIT_MS))).toEqual({ messages: 1, transactions: 0 });
});

test("a rollback costs the same as a commit", async () => {
  const c = await warm(16);
  const values = names(4, "cost");
  const s = shardsTouched(c, values);
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, values)));
  expect(
    await costOf(c, () => c.ledger("1").object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK"))),
  ).toEqual({
    messages: s,
    transactions: s + 1,
  });
});

test("a refused begin writes nothing in the ledger and in the shards that refuse it", async () => {
  const c = await warm(16);
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["taken"])));
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  expect(
    await costOf(c, () => c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["taken"]))),
  ).toEqual({ messages: 1, transactions: 0 });
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["leased"])));
  // For a leased name, one settle to the shard and one inquiry to the ledger are added.
  expect(
    await costOf(c, () => c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["leased"]))),
  ).toEqual({ messages: 3, transactions: 0 });
});

test("the clean-up after decisions takes at most a tenth of a transaction per lease", async () => {
  const c = await warm(4);
  const leases = Array.from({ length: 100 }, () => c.uuid());
  let cost = 0;
  for (const [index, lease] of leases.entries()) {
    const values = [`n${index}`];
    cost += (await costOf(c, () => c.ledger("1").object.begin(beginRequest(c.envelope, lease, values))))
      .transactions;
    cost += (
      await costOf(c, () => c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")))
    ).transactions;
  }
  const before = c.transactions();
  await c.pass(60_000);
  // One transaction each on the ledger and the shard for the begin, and the same for the decision. The alarms
  // may add some.
  expect(cost).toBe(400);
  expect(c.transactions() - before).toBeLessThanOrEqual(10);
});

test("a lookup costs no message, or one if it meets a hold", async () => {
  const c = await warm(1);
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])));
  const look = (value: string) => () =>
    c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", value)] });
  expect(await costOf(c, look("ada"))).toEqual({ messages: 1, transactions: 0 });
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  for (const value of ["ada", "nobody"])
    expect(await costOf(c, look(value))).toEqual({ messages: 0, transactions: 0 });
});
