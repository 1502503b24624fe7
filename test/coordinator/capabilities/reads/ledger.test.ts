/** Tests of how a cell lists its leases (R1). */
import { expect, test } from "vitest";
import { begin, decide, ok } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, callerOf, decideRequest } from "../../../support/ops.ts";

test("[R1] a page of leases ends where it says and starts at the requested time", async () => {
  const c = await Cluster.start({ shards: 1 });
  const leases: string[] = [];
  const created: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    const lease = c.uuid();
    await c.clock.runUntil(begin(c, "1", lease, [`n${n}`]));
    leases.push(lease);
    created.push(c.clock.now());
    c.clock.jump(1);
  }
  const list = async (limit: number, createdAfterMs: number, afterPosition = 0) => {
    const answer = await c.clock.runUntil(
      c
        .ledger("1")
        .object.listLeases({ ...c.envelope, caller: callerOf(), createdAfterMs, afterPosition, limit }),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    return answer.value;
  };
  expect(await list(3, 0)).toMatchObject({ leases: leases.map((lease) => ({ lease })), nextPosition: 0 });
  const first = await list(2, 0);
  expect(first.leases.map(({ lease }) => lease)).toEqual(leases.slice(0, 2));
  expect((await list(2, 0, first.nextPosition)).leases.map(({ lease }) => lease)).toEqual(leases.slice(2));
  expect((await list(9, created[1] ?? 0)).leases.map(({ lease }) => lease)).toEqual(leases.slice(1));
  expect((await list(9, created[1] ?? 0, first.nextPosition)).leases.map(({ lease }) => lease)).toEqual(
    leases.slice(2),
  );
});

test("[R1] a page of one lease says where to continue, and each kind of op is counted", async () => {
  const c = await Cluster.start({ shards: 1 });
  const owned = c.uuid();
  await c.clock.runUntil(begin(c, "1", owned, ["a", "b", "c"]));
  await c.clock.runUntil(decide(c, "1", owned, "COMMITTED"));
  const lease = c.uuid();
  const specs = [
    { kind: "replace", value: "a" } as const,
    { kind: "replace", value: "b" } as const,
    { kind: "destroy", value: "c" } as const,
  ];
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, specs)));
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["d"]));
  const page = await c.clock.runUntil(
    c.ledger("1").object.listLeases({
      ...c.envelope,
      caller: callerOf(),
      createdAfterMs: 0,
      afterPosition: 0,
      limit: 1,
    }),
  );
  const counts = { creates: 0, destroys: 1, replaces: 2, missing: 0 };
  expect(page).toEqual(
    ok({ leases: [expect.objectContaining({ lease, counts })], nextPosition: expect.any(Number) as number }),
  );
  expect(page.ok && page.value.nextPosition).toBeGreaterThan(0);
});

test("[B8] [R1] a page is not answered before the rows that it lists are durable", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
  const ledger = c.ledger("1");
  const lease = c.uuid();
  const running = begin(c, "1", lease, ["ada"]);
  const release = ledger.sql.holdFlushes();
  await c.clock.pass(50);
  let isAnswered = false;
  const listed = ledger.object
    .listLeases({ ...c.envelope, caller: callerOf(), createdAfterMs: 0, afterPosition: 0, limit: 10 })
    .finally(() => (isAnswered = true));
  await c.clock.pass(50);
  expect(isAnswered).toBe(false);
  release();
  expect(await c.clock.runUntil(listed)).toMatchObject({ value: { leases: [{}, { lease }] } });
  await c.clock.runUntil(running);
});

test("a page of leases reads at most its size + 2 rows, whatever was decided before", async () => {
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
    c.ledger("1").object.listLeases({
      ...c.envelope,
      caller: { role: "operator", keyId: "k", expiresAtMs: Number.MAX_SAFE_INTEGER },
      createdAfterMs: 0,
      afterPosition: 0,
      limit: 10,
    }),
  );
  expect(page.ok && page.value.leases).toHaveLength(10);
  expect(counts.rowsRead - before).toBeLessThanOrEqual(12);
});
