/** Tests of pruning at the edges of S1. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Decision, Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { insertLeases } from "../../../support/leases.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";

const no = (reason: string): object => ({
  ok: false,
  refusal: expect.objectContaining({ reason }) as unknown,
});

const start = (limits: Partial<Limits>): Promise<Cluster> => Cluster.start({ shards: 1, limits });
const rows = (c: Cluster) =>
  c.ledger("1").database.prepare("SELECT state, fence FROM lease ORDER BY position").all() as {
    state: string;
    fence: number;
  }[];
const fence = (c: Cluster) =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, c.uuid(), "ROLLED_BACK")));

const changedRows = (c: Cluster): number =>
  (c.ledger("1").database.prepare("SELECT total_changes() AS n").get() as { n: number }).n;

async function forget(c: Cluster): Promise<number> {
  const answer = await c.clock.runUntil(c.ledger("1").object.maintain(c.envelope));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.pruned;
}

async function committed(c: Cluster, name: string): Promise<string> {
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [name])));
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  return lease;
}

test("[S1] an outcome is kept for the retention, and an eighth longer if no lease replaces it", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  await committed(c, "ada");
  await c.pass(111_500);
  expect(await forget(c)).toBe(0);
  await c.clock.pass(2_000);
  expect(await forget(c)).toBe(1);
});

test("[S1] a new lease takes the row of an outcome that is applied and old, and of no other", async () => {
  const c = await start({ outcomeRetentionS: 100, sweepAfterMs: 600_000, maxBackoffMs: 1_000_000 });
  const { database } = c.ledger("1");
  const leases = () =>
    database
      .prepare("SELECT lease FROM lease ORDER BY created_position")
      .all()
      .map(({ lease }) => lease);
  const open = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, open, ["open"])));
  let stuck: string | undefined;
  const isStuck = ({ lease }: Decision): boolean => lease === stuck || stuck === undefined;
  c.fate = ({ method, message }) =>
    method === "exchange" && (message as Exchange).decisions.some(isStuck) ? "lose" : "deliver";
  stuck = await committed(c, "stuck");
  const old = [await committed(c, "ada"), await committed(c, "bob")];
  await c.pass(60_000);
  const young = await committed(c, "eve");
  expect(leases()).toEqual([open, stuck, ...old, young]);
  await c.pass(42_000);
  const before = changedRows(c);
  const first = await committed(c, "dan");
  expect(changedRows(c) - before).toBe(2);
  expect(leases()).toEqual([open, stuck, old[1], young, first]);
  const others = [await committed(c, "joe"), await committed(c, "zoe")];
  expect(leases()).toEqual([open, stuck, young, first, ...others]);
  // A begin of a forgotten lease begins a new one.
  const again = await c.clock.runUntil(
    c.ledger("1").object.begin(beginRequest(c.envelope, old[0] ?? "", ["ann"])),
  );
  expect(again).toMatchObject({ ok: true, value: { created: true } });
});

test("[S1] a lease that takes a row has nothing of the one before", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  const { database, object } = c.ledger("1");
  const lease = c.uuid();
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, ["ada"])));
  database.exec("UPDATE lease SET renewed_at_ms = 1, renewal_reason = 'still at work'");
  await c.clock.runUntil(
    object.decide({ ...decideRequest(c.envelope, lease, "ROLLED_BACK"), reason: "given up" }),
  );
  await c.pass(105_000);
  const taker = c.uuid();
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, taker, ["bob"])));
  const fresh = c.uuid();
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, fresh, ["eve"])));
  const [taken, inserted] = database.prepare("SELECT * FROM lease ORDER BY created_position").all();
  const own = new Set([
    "created_position",
    "lease",
    "position",
    "created_at_ms",
    "counter",
    "epochs",
    "payload",
    "payload_hash",
  ]);
  const rest = (row: Record<string, unknown> | undefined) =>
    Object.fromEntries(Object.entries(row ?? {}).filter(([name]) => !own.has(name)));
  expect(rest(taken)).toEqual(rest(inserted));
});

test("[S1] the ledger's alarm prunes without the cron", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  await committed(c, "ada");
  await c.pass(60_000);
  expect(await forget(c)).toBe(0);
  await c.pass(60_000);
  await committed(c, "bob");
  await c.pass(10_000);
  expect(rows(c)).toEqual([{ state: "COMMITTED", fence: 0 }]);
});

test("[S1] a granted lease is never forgotten, whatever its age", async () => {
  const c = await start({ outcomeRetentionS: 1 });
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])));
  await c.pass(600_000);
  expect(await forget(c)).toBe(0);
  expect(
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED"))),
  ).toMatchObject({ ok: true });
});

test("[C7] a fence without a begin is forgotten after the time in which a begin may be late", async () => {
  const c = await start({ lateBeginS: 100, outcomeRetentionS: 1_000, fences: 2 });
  await committed(c, "ada");
  await fence(c);
  await c.pass(60_000);
  await fence(c);
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  await c.pass(50_000);
  // Only the first fence is old enough.
  expect(await forget(c)).toBe(1);
  c.ledger("1").restart();
  expect(await fence(c)).toMatchObject({ ok: true });
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  expect(rows(c).filter((row) => row.fence === 0)).toHaveLength(1);
});

test("[C7] a refused fence makes the alarm forget old ones, also without the cron", async () => {
  const c = await start({ lateBeginS: 100, fences: 1 });
  await fence(c);
  await c.pass(200_000);
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  await c.pass(2_000);
  expect(await fence(c)).toMatchObject({ ok: true });
});

test("[C7] fences of running begins are not counted, and are kept as long as other outcomes", async () => {
  const c = await start({ lateBeginS: 10, outcomeRetentionS: 1_000, fences: 1, beginDeadlineMs: 1_000 });
  c.fate = (call) => (call.method === "exchange" ? "lose" : "deliver");
  const ledger = c.ledger("1").object;
  for (let n = 0; n < 3; n += 1) {
    const lease = c.uuid();
    const begun = ledger.begin(beginRequest(c.envelope, lease, [`n${n}`]));
    await c.clock.pass(10);
    const fenced = await c.clock.runUntil(ledger.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
    expect(fenced).toMatchObject({ ok: true });
    expect(await c.clock.runUntil(begun)).toEqual(no("LEASE_ROLLED_BACK"));
  }
  expect(await fence(c)).toMatchObject({ ok: true });
  expect(await fence(c)).toEqual(no("TOO_MANY_FENCES"));
  await c.pass(20_000);
  expect(await forget(c)).toBe(1);
  expect(rows(c)).toHaveLength(3);
});

test.each(["", "and its instance ends"])(
  "[S1] a rollback of a running begin is forgotten, too %s",
  async (ends) => {
    const c = await start({ outcomeRetentionS: 100, beginDeadlineMs: 1_000 });
    c.fate = (call) => (call.method === "exchange" ? "lose" : "deliver");
    const lease = c.uuid();
    const begun = c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"]));
    await c.clock.pass(10);
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
    expect(await c.clock.runUntil(begun)).toEqual(no("LEASE_ROLLED_BACK"));
    c.fate = () => "deliver";
    if (ends !== "") c.ledger("1").restart();
    await forget(c);
    expect(rows(c)).toHaveLength(1);
    await c.pass(200_000);
    await forget(c);
    expect(rows(c)).toEqual([]);
  },
);

test("[S1] an outcome that is not applied is kept, and holds up no others", async () => {
  const c = await start({ outcomeRetentionS: 1, sweepAfterMs: 600_000, maxBackoffMs: 100 });
  c.fate = (call) =>
    call.method === "exchange" && call.from === "ledger 1" && c.holds().length > 0 ? "lose" : "deliver";
  await committed(c, "ada");
  c.fate = () => "deliver";
  await committed(c, "bob");
  await c.clock.runUntil(c.ledger("1").object.alarm());
  await c.clock.pass(500);
  expect(await forget(c)).toBe(0);
  await c.clock.pass(700);
  expect(await forget(c)).toBe(1);
  expect(rows(c)).toHaveLength(1);
  await c.pass(10_000);
  expect(rows(c)).toEqual([]);
});

test("[S1] [M4] positions never go back, whatever was pruned and wherever the clock is", async () => {
  const c = await start({ outcomeRetentionS: 1 });
  const positions: number[] = [];
  const note = async (): Promise<void> => {
    const status = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
    positions.push(status.ok ? status.value.position : 0);
  };
  await committed(c, "ada");
  await note();
  await c.pass(10_000);
  await forget(c);
  expect(rows(c)).toEqual([]);
  c.clock.jump(-3_600_000);
  c.ledger("1").restart();
  await fence(c);
  await note();
  c.clock.jump(8_000 * 365 * 86_400_000);
  await fence(c);
  await note();
  await fence(c);
  await note();
  expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b));
  expect(positions.at(-1)).toBeLessThan(2 ** 53);
});

test("[S1] [M4] a clock that was ahead for some time does not make outcomes live longer", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  c.clock.jump(1_000_000_000);
  await committed(c, "ada");
  await c.pass(10_000);
  c.clock.jump(-1_000_000_000);
  await committed(c, "bob");
  await c.pass(90_000);
  expect(await forget(c)).toBe(0);
  c.ledger("1").restart();
  await c.pass(25_000);
  expect(await forget(c)).toBe(2);
});

/** Inserts outcomes of earlier instances, which examined them. */
async function insertOld(c: Cluster, count: number, atMs: number, pending: 0 | 1 = 0): Promise<void> {
  await committed(c, "newest");
  await c.pass(10_000);
  insertLeases(c.ledger("1").database, { count, prefix: "old-", pending, atMs, state: "ROLLED_BACK" });
}

test("[S1] one call prunes thousands in steps, up to a limit; an alarm continues soon", async () => {
  const c = await start({ outcomeRetentionS: 100 });
  await insertOld(c, 60_500, 0);
  await c.clock.pass(90_000);
  await fence(c);
  expect(await forget(c)).toBe(20_000);
  expect(await forget(c)).toBe(20_000);
  await c.pass(2_500);
  expect(rows(c)).toHaveLength(2);
});

test("[S1] thousands of outcomes that are not applied do not stop the pruning of later ones", async () => {
  const c = await start({ outcomeRetentionS: 1 });
  await insertOld(c, 30_000, 0, 1);
  c.ledger("1").database.exec("UPDATE lease SET pending = 0 WHERE position > 25000");
  expect(await forget(c)).toBe(0);
  expect(await forget(c)).toBe(5_000);
});

test("[S1] a ledger short of space forgets outcomes early, but none within `lateBeginS`", async () => {
  const c = await start({ lateBeginS: 100, ledgerBytes: 2_000_000, fences: 5, auditEntries: 5 });
  await committed(c, "ada");
  await c.pass(10_000);
  await insertOld(c, 25_000, c.clock.now());
  expect(await forget(c)).toBe(0);
  await c.clock.pass(101_000);
  expect(await forget(c)).toBeGreaterThan(3_000);
  expect(c.ledger("1").sql.sizeBytes()).toBeLessThan(1_500_000);
  const left = rows(c).length;
  expect(left).toBeGreaterThan(1_000);
  expect(await forget(c)).toBe(0);
});
