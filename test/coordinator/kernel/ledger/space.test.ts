/** Tests of what a ledger stores: what it notes as unfinished, and what it does when it is full. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import type { Begins } from "../../../../src/coordinator/kernel/ledger/begins.ts";
import { decideRequest } from "../../../support/ops.ts";
import { decideAll, fill, limitPages, PAGE_BYTES, small, startBegin } from "../../../support/full-ledger.ts";
import { unfinished } from "../../../support/leases.ts";
import { privatePath } from "../../../support/private-fields.ts";

/** No sweep runs, so only deliveries of the ledger apply decisions. */
const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ shards: 2, limits: { sweepAfterMs: 600_000, ...limits } });
const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;
const begin = (c: Cluster, lease: string, names: string[]) => c.clock.runUntil(startBegin(c, lease, names));
const commit = (c: Cluster, lease: string) =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));

async function committed(c: Cluster, name: string): Promise<string> {
  const lease = c.uuid();
  await begin(c, lease, [name]);
  await commit(c, lease);
  return lease;
}

/** The leases whose rows still have their batch. */
const withBatch = (c: Cluster): unknown[] =>
  c.ledger("1").database.prepare("SELECT lease FROM lease WHERE payload IS NOT NULL").all();

const unapplied = (c: Cluster): string[] => unfinished(c.ledger("1").database, 1);

const changedRows = (c: Cluster): number =>
  (c.ledger("1").database.prepare("SELECT total_changes() AS n").get() as { n: number }).n;

test("[S2] a decision drops its batch, and one row notes that all of some seconds are applied", async () => {
  const c = await start();
  await committed(c, "warm-up");
  await c.pass(60_000);
  const leases: string[] = [];
  for (let n = 0; n < 40; n += 1) leases.push(await committed(c, `n${n}`));
  expect(withBatch(c)).toEqual([]);
  expect(unapplied(c)).toEqual(leases);
  const before = { rows: changedRows(c), transactions: c.ledger("1").sql.counts.transactions };
  await c.pass(60_000);
  expect(unapplied(c)).toEqual([]);
  expect(changedRows(c) - before.rows).toBe(1);
  expect(c.ledger("1").sql.counts.transactions - before.transactions).toBe(1);
});

test("[S2] what is unfinished is pending until it is applied, and nothing waits for it", async () => {
  const c = await start();
  const open = c.uuid();
  await begin(c, open, ["open"]);
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  const stuck = await committed(c, "ada");
  c.fate = () => "deliver";
  const ledger = c.ledger("1");
  ledger.alarmAtMs = undefined;
  await committed(c, "bob");
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await c.clock.pass(10_000);
  await c.clock.runUntil(ledger.object.alarm());
  const pending = () =>
    ledger.database
      .prepare("SELECT lease FROM lease WHERE pending = 1")
      .all()
      .map(({ lease }) => lease);
  expect(pending()).toEqual([open, stuck]);
  ledger.restart();
  c.fate = () => "deliver";
  await c.clock.runUntil(ledger.object.status(c.envelope));
  await c.pass(20_000);
  expect(pending()).toEqual([open]);
  await commit(c, open);
  expect(pending()).toEqual([open]);
  await c.pass(20_000);
  expect(pending()).toEqual([]);
  expect(c.claims()).toHaveLength(3);
});

test("[S2] [B2] a begin of a decided lease is answered as before when its batch is gone", async () => {
  const c = await start();
  const [kept, undone] = [c.uuid(), c.uuid()];
  await begin(c, kept, ["ada"]);
  await begin(c, undone, ["bob"]);
  const answers = async () => [
    await begin(c, kept, ["ada"]),
    await begin(c, kept, ["other"]),
    await commit(c, kept),
    await begin(c, kept, ["ada"]),
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, undone, "ROLLED_BACK"))),
    await begin(c, undone, ["bob"]),
    await commit(c, undone),
  ];
  await answers();
  const lasting = (each: unknown): string => JSON.stringify(each).replaceAll(/"ageMs":\d+/g, "");
  const before = lasting(await answers());
  expect(before).toContain('"positions":');
  await c.pass(60_000);
  expect(withBatch(c)).toEqual([]);
  expect(lasting(await answers())).toBe(before);
});

test("[S2] [C3] after a crash before the note, the decision is sent again", async () => {
  const c = await start();
  const lease = await committed(c, "ada");
  c.ledger("1").restart();
  expect(unapplied(c)).toEqual([lease]);
  await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  await c.pass(20_000);
  expect(unapplied(c)).toEqual([]);
  expect(c.claims()).toHaveLength(1);
});

const oneName = (n: number): string[] => [`n${n}`];
/** Names that take `bytes` altogether. */
const manyNames =
  (bytes: number) =>
  (n: number): string[] =>
    Array.from({ length: Math.ceil(bytes / 500) }, (_, k) => `${"x".repeat(470)}-${n}-${k}`);

test.each<[string, Partial<Limits>, (n: number) => string[]]>([
  ["one name", {}, oneName],
  [
    "names that just fit into a page",
    {},
    (n) => Array.from({ length: 12 }, (_, k) => `n${n}-${k}-${"x".repeat(20)}`),
  ],
  ["many names", {}, (n) => Array.from({ length: 100 }, (_, k) => `n${n}-${k}`)],
  ["batches of a fifth of the ledger", {}, manyNames(75_000)],
  ["long reasons", { reasonBytes: 40_000, ledgerBytes: 2_000_000, fences: 1 }, oneName],
  ["many fences", { reasonBytes: 1, fences: 2_000, ledgerBytes: 1_500_000 }, manyNames(50_000)],
  [
    "fences with long reasons",
    { reasonBytes: 40_000, fences: 50, ledgerBytes: 4_000_000 },
    manyNames(100_000),
  ],
])("[S3] [C6] a full ledger refuses begins and decides all of its leases: %s", async (_, limits, names) => {
  const c = await start({ ...small, ...limits });
  const leases = await fill(c, names);
  expect(leases.length).toBeGreaterThan(1);
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toMatchObject({
    ok: true,
    value: { storedBytes: c.ledger("1").sql.sizeBytes() },
  });
  await decideAll(c, leases);
});

test.each<[string, Partial<Limits>, (n: number) => string[]]>([
  ["large batches", {}, manyNames(60_000)],
  ["long reasons", { reasonBytes: 40_000, ledgerBytes: 2_000_000, fences: 1 }, oneName],
])("[S3] [C6] begins that run at the same time leave room for one another: %s", async (_, limits, names) => {
  const c = await start({ ...small, ...limits });
  limitPages(c);
  c.fate = () => "slow";
  const leases = Array.from({ length: 60 }, () => c.uuid());
  const begun = leases.map((lease, n) => startBegin(c, lease, names(n)));
  const answers = await c.clock.runUntil(Promise.all(begun));
  expect(answers.find(({ ok }) => !ok)).toMatchObject({ refusal: { reason: "LEDGER_FULL" } });
  const granted = leases.filter((_lease, index) => answers[index]?.ok);
  expect(granted.length).toBeGreaterThan(1);
  await decideAll(c, granted);
});

/** What SQLite may need to add or change one row. */
const ROW = 2 * PAGE_BYTES;

test("[S3] a ledger keeps room for each grant, each decision and each fence", async () => {
  const reasonBytes = 1_000;
  const neededBy = async (fences: number) => {
    const c = await start({ fences, reasonBytes });
    const begins = privatePath(c.ledger("1").object, "#part.begins") as Begins;
    return { c, begins, reserved: () => begins.neededBytes() - c.ledger("1").sql.sizeBytes() };
  };
  const { c, begins, reserved } = await neededBy(0);
  const empty = reserved();
  // One more begin may be granted and decided.
  expect(empty).toBeGreaterThanOrEqual(2 * ROW + reasonBytes);
  expect(begins.neededBytes(1_000) - begins.neededBytes(0)).toBe(1_000);
  c.fate = () => "slow";
  const running = begin(c, c.uuid(), ["x".repeat(800)]);
  await c.clock.pass(10);
  expect(reserved() - empty).toBeGreaterThanOrEqual(800 + 2 * ROW + reasonBytes);
  await running;
  expect(reserved() - empty).toBeGreaterThanOrEqual(ROW + reasonBytes);
  const fences = (await neededBy(1_000)).reserved() - empty;
  expect(fences).toBeGreaterThanOrEqual(1_000 * (500 + reasonBytes));
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

test("[S3] [O3] a full ledger has room for operators' audit entries, with the longest reasons", async () => {
  const c = await start({ ...small, reasonBytes: 4_096, auditEntries: 30, ledgerBytes: 700_000 });
  const leases = await fill(c, manyNames(10_000));
  const operator = { role: "operator" as const, keyId: "op", expiresAtMs: Number.MAX_SAFE_INTEGER };
  const reason = "r".repeat(c.limits.reasonBytes);
  const answers = [];
  // Fences count too. Whoever needs more entries than there may be is refused.
  for (const lease of [...leases, ...Array.from({ length: 40 }, () => c.uuid())])
    answers.push(
      await c.clock.runUntil(
        c.ledger("1").object.decide({
          ...decideRequest(c.envelope, lease, "ROLLED_BACK"),
          caller: operator,
          reason,
        }),
      ),
    );
  expect(answers.filter(({ ok }) => ok).length).toBeGreaterThan(5);
  for (const answer of answers)
    if (!answer.ok) expect(answer.refusal.reason).toMatch(/^AUDIT_FULL$|^TOO_MANY_FENCES$/);
  expect(c.ledger("1").halted).toBe(false);
  expect(c.ledger("1").sql.sizeBytes()).toBeLessThanOrEqual(c.limits.ledgerBytes);
});
