/** Tests of ages, pauses and deadlines while clocks are wrong (M4). */
import { expect, test } from "vitest";
import type { Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { grantedLeases } from "../../../support/calls.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";

const HOUR_MS = 3_600_000;

const begin = async (c: Cluster): Promise<string> => {
  const lease = c.uuid();
  const names = [`n-${lease.slice(-6)}`];
  const begun = await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, names)));
  expect(begun.ok).toBe(true);
  return lease;
};

/** The ages of all outstanding leases in seconds, in the order of their grants. */
const ages = async (c: Cluster): Promise<number[]> =>
  (await grantedLeases(c, "1")).map(({ ageMs }) => Math.round(ageMs / 1_000));

const marks = (c: Cluster): unknown[] => {
  const row = c.ledger("1").database.prepare("SELECT value FROM meta WHERE name = 'clock_marks'").get() as
    | { value: string }
    | undefined;
  return JSON.parse(row?.value ?? "[]") as unknown[];
};

test("[M4] after a clock was ahead for some time, new leases get older as time passes", async () => {
  const c = await Cluster.start();
  c.clock.jump(HOUR_MS);
  await begin(c);
  c.clock.jump(-HOUR_MS);
  await begin(c);
  await c.pass(700_000);
  await begin(c);
  expect(await ages(c)).toEqual([700, 700, 0]);
  c.ledger("1").restart();
  expect(await ages(c)).toEqual([700, 700, 0]);
});

test("[M4] an idle ledger finds out in its next alarm or cron call that its clock was ahead", async () => {
  const c = await Cluster.start();
  c.clock.jump(HOUR_MS);
  await begin(c);
  c.clock.jump(-HOUR_MS);
  expect(await ages(c)).toEqual([0]);
  await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  expect(marks(c)).toHaveLength(1);
  await c.pass(700_000);
  expect(await ages(c)).toEqual([700]);
  // Nothing more is stored, by this instance or the next.
  for (let n = 0; n < 3; n += 1) {
    c.ledger("1").restart();
    await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  }
  expect(marks(c)).toHaveLength(1);
});

test("[M4] a decision is as old as the mark after it; small steps back leave no mark", async () => {
  const c = await Cluster.start();
  const lease = await begin(c);
  c.clock.jump(-9_000);
  await begin(c);
  expect(marks(c)).toEqual([]);
  c.clock.jump(HOUR_MS);
  const decide = () =>
    c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  await decide();
  c.clock.jump(-HOUR_MS);
  await begin(c);
  const nowMs = c.clock.now();
  const again = await decide();
  expect(again.ok && again.value.decidedAtMs).toBe(nowMs);
  expect(again.ok && again.value.createdAtMs).toBeLessThanOrEqual(nowMs);
});

test("[M4] a clock that goes back again and again leaves a limited number of marks", async () => {
  const c = await Cluster.start();
  for (let n = 0; n < 50; n += 1) {
    c.clock.jump(100_000);
    await begin(c);
    c.clock.jump(-40_000);
    await begin(c);
  }
  expect(marks(c)).toHaveLength(20);
  for (const age of await ages(c)) expect(age).toBeGreaterThanOrEqual(0);
  // A mark replaces those that it includes.
  c.clock.jump(-100 * HOUR_MS);
  await begin(c);
  expect(marks(c)).toHaveLength(1);
});

const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;

test("[M4] [C3] a decision that waits for its next delivery is sent after a clock went back", async () => {
  const c = await Cluster.start({ limits: { sweepAfterMs: 600_000, exchangeTimeoutMs: 100 } });
  const lease = await begin(c);
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  await c.clock.pass(200);
  c.fate = () => "deliver";
  c.clock.jump(-HOUR_MS);
  expect(c.claims()).toEqual([]);
  await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
  expect(c.claims()).toHaveLength(1);
});

test("[M4] [B9] a begin whose clock goes back meanwhile ends with the conflict that it met", async () => {
  const c = await Cluster.start({ shards: 1 });
  // The begin of cell 2 gets its hold, and no answer, so it stays running.
  c.fate = (call) => (call.from === "ledger 2" && call.method === "exchange" ? "lose_answer" : "deliver");
  const other = c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"]));
  await c.clock.pass(10);
  let settled = 0;
  c.fate = (call) => {
    if (call.from === "ledger 1" && call.method === "settle" && (settled += 1) === 2) c.clock.jump(-HOUR_MS);
    return "deliver";
  };
  const begun = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"]));
  const before = c.clock.now();
  expect(await c.clock.runUntil(begun)).toMatchObject({ ok: false, refusal: { code: "ABORTED" } });
  expect(settled).toBe(2);
  expect(c.clock.now()).toBeLessThan(before - HOUR_MS + 10_000);
  await c.clock.runUntil(other);
});
