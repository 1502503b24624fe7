/** Tests of pruning at the edges of S1. */
import { expect, test } from "vitest";
import type { Limits } from "../../../src/core/limits.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../support/ops.ts";

const no = (reason: string): object => ({
  ok: false,
  refusal: expect.objectContaining({ reason }) as unknown,
});

const start = (limits: Partial<Limits>): Promise<Cluster> => Cluster.start({ shards: 1, limits });
const fence = (c: Cluster) =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, c.uuid(), "ROLLED_BACK")));

async function forget(c: Cluster, pulledPosition = Number.MAX_SAFE_INTEGER): Promise<number> {
  const answer = await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope, pulledPosition }));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.pruned;
}

async function changes(c: Cluster, afterPosition: number) {
  const answer = await c.clock.runUntil(
    c.ledger("1").object.pull({ ...c.envelope, afterPosition, limit: 1_000 }),
  );
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.changes;
}

async function committed(c: Cluster, name: string): Promise<string> {
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [name])));
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  return lease;
}

test("[S1] a pulled outcome is kept for the retention time, and not longer", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  await fence(c);
  await c.clock.pass(99_000);
  expect(await forget(c)).toBe(0);
  await c.clock.pass(2_000);
  expect(await forget(c, 0)).toBe(0);
  expect(await forget(c)).toBe(1);
});

test("[S1] an outcome that is not pulled is kept for the longest wait, and not longer", async () => {
  const c = await start({ outcomeRetentionS: 1, outcomeMaxS: 100 });
  await fence(c);
  await c.clock.pass(99_000);
  expect(await forget(c, 0)).toBe(0);
  await c.clock.pass(2_000);
  expect(await forget(c, 0)).toBe(1);
});

test("[S1] a granted lease is never forgotten, whatever its age", async () => {
  const c = await start({ outcomeRetentionS: 1, outcomeMaxS: 1 });
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])));
  await c.pass(600_000);
  expect(await forget(c)).toBe(0);
  expect(
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED"))),
  ).toMatchObject({ ok: true });
});

test("[C7] [S1] pruning a fence makes room for another one, and pruning a lease does not", async () => {
  const c = await start({ outcomeRetentionS: 10, fences: 2 });
  await committed(c, "ada");
  await fence(c);
  await c.pass(20_000);
  await fence(c);
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  // The committed lease and the first fence are deleted. The second fence is too young.
  expect(await forget(c)).toBe(2);
  c.ledger("1").restart();
  expect(await fence(c)).toMatchObject({ ok: true });
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  await c.pass(20_000);
  await committed(c, "bob");
  expect(await forget(c)).toBe(2);
  expect(await fence(c)).toMatchObject({ ok: true });
  expect(await fence(c)).toMatchObject({ ok: true });
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
});

test("[S1] [M4] nothing after an unapplied outcome is pruned, and positions never go back", async () => {
  const c = await start({ outcomeRetentionS: 1, sweepAfterMs: 600_000, maxBackoffMs: 100 });
  c.fate = (call) =>
    call.method === "exchange" && call.from === "ledger 1" && c.holds().length > 0 ? "lose" : "deliver";
  await committed(c, "ada");
  await fence(c);
  const largest = (await changes(c, 0)).at(-1)?.position ?? 0;
  await c.clock.pass(10_000);
  expect(await forget(c)).toBe(0);
  c.fate = () => "deliver";
  await c.pass(10_000);
  expect(await forget(c)).toBe(2);
  c.clock.jump(-3_600_000);
  c.ledger("1").restart();
  await fence(c);
  expect(await changes(c, largest)).toHaveLength(1);
});

test("[S1] one call prunes thousands in steps, up to a limit; the next call continues", async () => {
  const c = await start({ outcomeRetentionS: 1 });
  await fence(c);
  c.ledger("1").database.exec(
    `INSERT INTO lease
     SELECT 'old-' || n, 1, n, n, 'ROLLED_BACK', 0, 0, 0, NULL, NULL, '', 0, 0, 0, 0, NULL, NULL
       FROM (WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 20500)
             SELECT n FROM count)`,
  );
  expect(await forget(c)).toBe(20_000);
  expect(await forget(c)).toBe(500);
  expect(await forget(c)).toBe(0);
});
