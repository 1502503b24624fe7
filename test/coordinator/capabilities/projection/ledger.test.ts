/** Tests of how a ledger tells the cron its open leases. */
import { expect, test } from "vitest";
import type { KnownLease, Pull } from "../../../../src/coordinator/capabilities/projection/messages.ts";
import { begin, decide, ok } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";

async function pull(c: Cluster, limit: number, has: KnownLease[] = []) {
  const answer = await c.clock.runUntil(
    c.ledger("1").object.pull({ ...c.envelope, after: 0, through: null, has, limit }),
  );
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

test("[S4] [R1] pulls give the open leases, and positions grow after a restart", async () => {
  const c = await Cluster.start({ limits: { outcomeRetentionS: 1 } });
  const open = new Map<number, string>();
  const pullAll = async (): Promise<void> => {
    for (let after: number | null = 0; after !== null;) {
      const has = [...open].filter(([position]) => position > (after ?? 0)).slice(0, 4);
      const through = has.length < 4 ? null : (has.at(-1)?.[0] ?? null);
      const message: Pull = { ...c.envelope, after, through, has, limit: 3 };
      const answer = await c.clock.runUntil(c.ledger("1").object.pull(message));
      if (!answer.ok) throw new Error(answer.refusal.detail);
      const { granted, decided } = answer.value;
      for (const { createdPosition, lease } of granted) open.set(createdPosition, lease);
      for (const position of decided) open.delete(position);
      after = answer.value.through;
    }
  };
  const expected: string[] = [];
  for (let round = 0; round < 30; round += 1) {
    const lease = c.uuid();
    await c.clock.runUntil(begin(c, "1", lease, [`n${round}`]));
    expected.push(lease);
    const [earlier] = expected.slice(-3, -2);
    if (earlier !== undefined && round % 3 > 0) {
      const outcome = round % 3 === 1 ? "COMMITTED" : "ROLLED_BACK";
      await c.clock.runUntil(decide(c, "1", earlier, outcome));
      expected.splice(-3, 1);
    }
    if (round % 4 === 0) await pullAll();
    if (round % 10 === 9) {
      await pullAll();
      await c.pass(10_000);
      await c.clock.runUntil(c.ledger("1").object.maintain(c.envelope));
      c.ledger("1").restart();
    }
  }
  await pullAll();
  expect([...open.values()].toSorted()).toEqual(expected.toSorted());
});

test("[S4] a pull goes in pages, and sends nothing of a batch but its counts", async () => {
  const c = await Cluster.start({ shards: 1 });
  const leases = Array.from({ length: 5 }, () => c.uuid());
  for (const [n, lease] of leases.entries())
    expect(await c.clock.runUntil(begin(c, "1", lease, [`name-${n}`]))).toEqual(ok({ created: true }));
  const pages: number[] = [];
  const seen: string[] = [];
  for (let after: number | null = 0; after !== null;) {
    const message: Pull = { ...c.envelope, after, through: null, has: [], limit: 2 };
    const answer = await c.clock.runUntil(c.ledger("1").object.pull(message));
    if (!answer.ok) throw new Error(answer.refusal.detail);
    expect(JSON.stringify(answer)).not.toContain("name-");
    seen.push(...answer.value.granted.map(({ lease }) => lease));
    pages.push(answer.value.granted.length);
    after = answer.value.through;
  }
  expect(seen).toEqual(leases);
  expect(pages).toEqual([2, 2, 1]);
});

test("[S4] a page of a pull has at most `limit` leases, in order, and says what it is about", async () => {
  const c = await Cluster.start({ shards: 1 });
  const leases = Array.from({ length: 5 }, () => c.uuid());
  for (const [index, lease] of leases.entries()) await c.clock.runUntil(begin(c, "1", lease, [`n${index}`]));
  expect(await pull(c, 3)).toMatchObject({
    granted: leases.slice(0, 3).map((lease) => ({ lease })),
    through: expect.any(Number) as unknown,
  });
  expect(await pull(c, 5)).toMatchObject({ through: null });
  const { through, granted } = await pull(c, 3);
  const known = granted.map(({ createdPosition, lease }): KnownLease => [createdPosition, lease]);
  // Of a lease that is beyond the range of the answer, it says nothing.
  const gone: KnownLease[] = [1, (through ?? 0) + 1].map((position) => [position, c.uuid()]);
  expect(await pull(c, 3, [...known.slice(1), ...gone])).toMatchObject({
    granted: [granted[0]],
    decided: [1],
    through,
  });
  const [a = "", b = "", d = "", e = "", f = ""] = leases;
  await c.clock.runUntil(decide(c, "1", a, "COMMITTED"));
  await c.clock.runUntil(decide(c, "1", d, "ROLLED_BACK"));
  const last = c.uuid();
  await c.clock.runUntil(begin(c, "1", last, ["last"]));
  expect((await pull(c, 10)).granted.map(({ lease }) => lease)).toEqual([b, e, f, last]);
});

test("[S4] [B8] a pull is not answered before the rows that it reads are durable", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
  const ledger = c.ledger("1");
  const lease = c.uuid();
  const running = begin(c, "1", lease, ["ada"]);
  const release = ledger.sql.holdFlushes();
  await c.clock.pass(50);
  let isAnswered = false;
  const pulled = ledger.object
    .pull({ ...c.envelope, after: 0, through: null, has: [], limit: 10 })
    .finally(() => (isAnswered = true));
  await c.clock.pass(50);
  expect(isAnswered).toBe(false);
  release();
  expect(await c.clock.runUntil(pulled)).toMatchObject({ value: { granted: [{}, { lease }] } });
  await c.clock.runUntil(running);
});
