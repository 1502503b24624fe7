/** What each call may cost, in messages and durable transactions: docs/reference/limits.md. Counted, never timed. */
import { expect, test } from "vitest";
import { shardOf, shardsOf } from "../../src/core/placement.ts";
import { Cluster } from "../support/cluster.ts";
import { beginRequest, decideRequest, keyOf } from "../support/ops.ts";

interface Cost {
  messages: number;
  transactions: number;
}

async function costOf(c: Cluster, work: () => Promise<unknown>): Promise<Cost> {
  const before = { messages: c.calls.length, transactions: c.transactions() };
  await c.clock.runUntil(work());
  return { messages: c.calls.length - before.messages, transactions: c.transactions() - before.transactions };
}

/** A cluster in which every object has been used: the first use confirms placements and raises the incarnation. */
async function warm(shards: number): Promise<Cluster> {
  const c = await Cluster.start({ shards });
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
  return c;
}

const names = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const shardsTouched = (c: Cluster, values: readonly string[]): number =>
  new Set(values.map((value) => shardOf("ROUTES", value, shardsOf(c.envelope.placement)))).size;

test.each([1, 2, 4, 16])(
  "a begin of %i claims on s shards: s messages between objects, s + 1 transactions; its commit the same",
  async (count) => {
    const c = await warm(16);
    const values = names(count, "cost");
    const s = shardsTouched(c, values);
    const lease = c.uuid();
    // The call to the ledger itself is the one message more that the budget allows.
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

test("a rollback costs what a commit costs", async () => {
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

test("a refused begin writes nothing where it is refused: not in the ledger, not in the refusing shards", async () => {
  const c = await warm(16);
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["taken"])));
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  expect(
    await costOf(c, () => c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["taken"]))),
  ).toEqual({ messages: 1, transactions: 0 });
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["leased"])));
  // Leased: one question to the shard and one to the ledger find out whether it still is.
  expect(
    await costOf(c, () => c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["leased"]))),
  ).toEqual({ messages: 3, transactions: 0 });
});

test("cleaning up after decisions takes at most a tenth of a transaction per lease", async () => {
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
  // One transaction each on ledger and shard, twice; and whatever the alarms did.
  expect(cost).toBe(400);
  expect(c.transactions() - before).toBeLessThanOrEqual(10);
});

test("a lookup is one call and at most two point reads; two messages only when it meets a create hold", async () => {
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

test("a page of leases reads no more rows than its size + 2, whatever was decided before", async () => {
  const c = await Cluster.start({ shards: 1 });
  for (let n = 0; n < 300; n += 1) {
    const lease = c.uuid();
    await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [`n${n}`])));
    if (n % 10 > 0)
      await c.clock.runUntil(
        c
          .ledger("1")
          .object.decide(decideRequest(c.envelope, lease, n % 2 > 0 ? "COMMITTED" : "ROLLED_BACK")),
      );
  }
  const { counts } = c.ledger("1").sql;
  const before = counts.rowsRead;
  const page = await c.clock.runUntil(
    c.ledger("1").object.list({
      ...c.envelope,
      caller: { role: "operator", keyId: "k" },
      createdAfterMs: 0,
      afterPosition: 0,
      limit: 10,
    }),
  );
  expect(page.ok && page.value.leases).toHaveLength(10);
  expect(counts.rowsRead - before).toBeLessThanOrEqual(12);
});
