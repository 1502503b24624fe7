/** Tests of what a ledger stores: when it drops batches, and what it does when it is full. */
import { expect, test } from "vitest";
import type { Limits } from "../../../src/core/limits.ts";
import type { Exchange } from "../../../src/core/messages.ts";
import { Cluster, type Call } from "../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../support/ops.ts";

/** No sweep runs, so only deliveries of the ledger apply decisions. */
const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ shards: 2, limits: { sweepAfterMs: 600_000, ...limits } });
const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;
const begin = (c: Cluster, lease: string, names: string[]) =>
  c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, names)));
const commit = (c: Cluster, lease: string) =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));

async function committed(c: Cluster, name: string): Promise<string> {
  const lease = c.uuid();
  await begin(c, lease, [name]);
  await commit(c, lease);
  return lease;
}

/** The leases whose rows still have their batch, in the order of their changes. */
const withBatch = (c: Cluster): unknown[] =>
  (
    c
      .ledger("1")
      .database.prepare(
        "SELECT lease FROM lease WHERE payload IS NOT NULL OR epochs IS NOT NULL ORDER BY position",
      )
      .all() as { lease: string }[]
  ).map(({ lease }) => lease);

const changedRows = (c: Cluster): number =>
  (c.ledger("1").database.prepare("SELECT total_changes() AS n").get() as { n: number }).n;

test("[S2] applied decisions lose their batches together, in one transaction", async () => {
  const c = await start();
  await committed(c, "warm-up");
  await c.pass(60_000);
  const leases: string[] = [];
  for (let n = 0; n < 40; n += 1) leases.push(await committed(c, `n${n}`));
  expect(withBatch(c)).toEqual(leases);
  const before = { rows: changedRows(c), transactions: c.ledger("1").sql.counts.transactions };
  await c.pass(60_000);
  expect(withBatch(c)).toEqual([]);
  // One row for each lease, and the applied position.
  expect(changedRows(c) - before.rows).toBe(leases.length + 1);
  expect(c.ledger("1").sql.counts.transactions - before.transactions).toBe(1);
});

test("[S2] a decision keeps its batch until every shard has applied it; later ones do not wait", async () => {
  const c = await start();
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  const stuck = await committed(c, "ada");
  c.fate = () => "deliver";
  const ledger = c.ledger("1");
  ledger.alarmAtMs = undefined;
  await committed(c, "bob");
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.pass(10_000);
  await c.clock.runUntil(ledger.object.alarm());
  expect(withBatch(c)).toEqual([stuck]);
  ledger.restart();
  c.fate = () => "deliver";
  await c.clock.runUntil(ledger.object.status(c.envelope));
  await c.pass(20_000);
  expect(withBatch(c)).toEqual([]);
  expect(c.claims()).toHaveLength(2);
});

test("[S2] [B2] a begin of a decided lease is answered as before when its batch is gone", async () => {
  const c = await start();
  const [kept, undone] = [c.uuid(), c.uuid()];
  await begin(c, kept, ["ada"]);
  await begin(c, undone, ["bob"]);
  await commit(c, kept);
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, undone, "ROLLED_BACK")));
  const answers = async () => [
    await begin(c, kept, ["ada"]),
    await begin(c, kept, ["other"]),
    await begin(c, undone, ["bob"]),
    await commit(c, kept),
    await commit(c, undone),
  ];
  const withoutAge = (text: string): string => text.replaceAll(/"ageMs":\d+/g, "");
  const before = JSON.stringify(await answers());
  await c.pass(60_000);
  expect(withBatch(c)).toEqual([]);
  expect(withoutAge(JSON.stringify(await answers()))).toBe(withoutAge(before));
});

test("[S2] [C3] after a crash before the drop, the decision is sent again and dropped", async () => {
  const c = await start();
  const lease = await committed(c, "ada");
  c.ledger("1").restart();
  expect(withBatch(c)).toEqual([lease]);
  await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  await c.pass(20_000);
  expect(withBatch(c)).toEqual([]);
  expect(c.claims()).toHaveLength(1);
});

const small: Partial<Limits> = {
  ledgerBytes: 400_000,
  fences: 5,
  reasonBytes: 500,
  outcomeRetentionS: 3_600,
};

/** Begins leases until the ledger is full. The database cannot grow beyond the limit. */
async function fill(c: Cluster, names: (n: number) => string[]): Promise<string[]> {
  c.ledger("1").database.exec(`PRAGMA max_page_count = ${Math.floor(c.limits.ledgerBytes / 4_096)}`);
  const leases: string[] = [];
  for (let n = 0; ; n += 1) {
    const lease = c.uuid();
    const begun = await begin(c, lease, names(n));
    if (begun.ok) leases.push(lease);
    else {
      expect(begun.refusal).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "LEDGER_FULL" });
      return leases;
    }
  }
}

test.each([
  ["one name", (n: number) => [`n${n}`]],
  [
    "names that just fit into a page",
    (n: number) => Array.from({ length: 12 }, (_, k) => `n${n}-${k}-${"x".repeat(20)}`),
  ],
  ["many names", (n: number) => Array.from({ length: 100 }, (_, k) => `n${n}-${k}`)],
])("[S3] [C6] a full ledger refuses begins and decides all of its leases: %s", async (_, names) => {
  const c = await start(small);
  const leases = await fill(c, names);
  expect(leases.length).toBeGreaterThan(3);
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toMatchObject({
    ok: true,
    value: { storedBytes: c.ledger("1").sql.sizeBytes() },
  });
  const longest = {
    caller: { role: "operator" as const, keyId: "op", expiresAtMs: Number.MAX_SAFE_INTEGER },
    reason: "r".repeat(500),
  };
  for (let n = 0; n < 5; n += 1) {
    const fenced = c
      .ledger("1")
      .object.decide({ ...decideRequest(c.envelope, c.uuid(), "ROLLED_BACK"), ...longest });
    expect(await c.clock.runUntil(fenced)).toMatchObject({ ok: true });
  }
  for (const [index, lease] of leases.entries()) {
    const outcome = index % 2 === 0 ? "COMMITTED" : "ROLLED_BACK";
    const decided = c.ledger("1").object.decide({ ...decideRequest(c.envelope, lease, outcome), ...longest });
    expect(await c.clock.runUntil(decided)).toMatchObject({ ok: true, value: { state: outcome } });
  }
  expect(c.ledger("1").halted).toBe(false);
  expect(c.ledger("1").sql.sizeBytes()).toBeLessThanOrEqual(c.limits.ledgerBytes);
});

test("[S3] a begin in a full ledger sends nothing, and works again once leases are forgotten", async () => {
  const c = await start({ ...small, lateBeginS: 60 });
  const leases = await fill(c, (n) => [`n${n}`]);
  const sent = c.calls.length;
  expect(await begin(c, c.uuid(), ["one-more"])).toMatchObject({ ok: false });
  expect(c.calls.length).toBe(sent);
  // A replay of an earlier begin is answered.
  expect(await begin(c, leases[0] ?? "", ["n0"])).toMatchObject({ ok: true, value: { created: false } });
  for (const lease of leases) await commit(c, lease);
  for (let n = 0; n < 2_000; n += 1) {
    const begun = await begin(c, c.uuid(), [`later-${n}`]);
    if (!begun.ok) break;
    await commit(c, begun.value.lease.lease);
  }
  expect(await begin(c, c.uuid(), ["one-more"])).toMatchObject({ ok: false });
  await c.pass(120_000);
  // Its alarm forgets old outcomes a second later.
  await begin(c, c.uuid(), ["one-more"]);
  await c.pass(2_000);
  expect(await begin(c, c.uuid(), ["one-more"])).toMatchObject({ ok: true });
});
