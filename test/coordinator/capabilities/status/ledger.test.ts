/** Tests of what a ledger keeps of its cell's reports. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { ReportStatus } from "../../../../src/coordinator/capabilities/status/messages.ts";
import type { HistoryPoint } from "../../../../src/coordinator/kernel/messages.ts";
import openapi from "../../../../openapi.json" with { type: "json" };
import { Cluster } from "../../../support/cluster.ts";
import { decideAll, fill, small } from "../../../support/full-ledger.ts";
import { beginRequest, callerOf } from "../../../support/ops.ts";

const sdk = { name: "leasehold", version: "0.1.0" };
const ledger = (c: Cluster) => c.ledger("1").object;
const start = (limits: Partial<Limits> = {}) => Cluster.start({ limits: { statusEveryMs: 0, ...limits } });

const report = (c: Cluster, more: Partial<ReportStatus> = {}) =>
  c.clock.runUntil(ledger(c).reportStatus({ ...c.envelope, caller: callerOf(), sdk, ...more }));
const stored = (c: Cluster) =>
  c.clock.runUntil(ledger(c).reportedStatus({ ...c.envelope, caller: callerOf() }));
const reconciliation = { outcome: "done", endedAgoMs: 0 } as const;
const pointOf = (c: Cluster): HistoryPoint | undefined => ledger(c).told().point;
const count = (c: Cluster, rows: string): number =>
  (c.ledger("1").database.prepare(`SELECT count(*) AS n FROM ${rows}`).get() as { n: number }).n;

test("[U2] a report takes no position and no incarnation, and never becomes a second row", async () => {
  const c = await start();
  await c.clock.runUntil(ledger(c).begin(beginRequest(c.envelope, c.uuid(), ["a"])));
  const [point, rows] = [pointOf(c), count(c, "meta")];
  for (let n = 0; n < 5; n += 1) expect(await report(c, { reconciliation })).toMatchObject({ ok: true });
  expect(pointOf(c)).toEqual(point);
  expect(count(c, "meta")).toBe(rows + 1);
  const incarnations = count(c, "incarnation");
  for (let n = 0; n < 5; n += 1) {
    c.ledger("1").restart();
    await report(c);
  }
  expect(count(c, "incarnation")).toBe(incarnations);
});

test("[U2] an answered report is there after a crash", async () => {
  const c = await start();
  const verification = { status: "done", endedAgoMs: 5, counts: { missing: 2 } } as const;
  const answer = await report(c, { verification });
  c.ledger("1").restart();
  const after = await stored(c);
  if (!answer.ok || !after.ok) throw new Error("a call failed");
  expect(after.value).toEqual({ ...answer.value, nowMs: after.value?.nowMs });
});

test("[U2] a ledger that has gone back in time stores no report", async () => {
  const c = await start();
  await report(c);
  const seen = { incarnation: 999 * 2 ** 24, position: 7 };
  expect(await report(c, { seen, reconciliation })).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await stored(c)).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
});

test("[U2] a report whose write may be lost is not answered", async () => {
  const c = await start();
  await report(c);
  c.ledger("1").sql.failFlushes();
  await expect(report(c, { reconciliation })).rejects.toThrow("the disk did not answer");
});

test("[U3] a part that is left out stays, and the last run that was done is remembered", async () => {
  const c = await start();
  const counts = { rows: 7, missing: 2 };
  const first = await report(c, { verification: { status: "done", endedAgoMs: 1_000, counts } });
  const doneMs = first.ok ? first.value.verification?.endedAtMs : undefined;
  expect(doneMs).toBe(c.clock.now() - 1_000);
  await c.clock.pass(60_000);
  const second = await report(c, { sdk: { ...sdk, version: "0.2.0" }, reconciliation });
  expect(second).toMatchObject({
    value: { sdk: { version: "0.2.0" }, verification: { counts, endedAtMs: doneMs, lastDoneAtMs: doneMs } },
  });
  await c.clock.pass(60_000);
  const failed = { status: "failed", startedAgoMs: 5, endedAgoMs: 0 } as const;
  const third = await report(c, {
    verification: failed,
    reconciliation: { ...reconciliation, outcome: "aborted" },
  });
  const now = c.clock.now();
  expect(third).toMatchObject({
    value: {
      reportedAtMs: now,
      verification: { status: "failed", startedAtMs: now - 5, endedAtMs: now, lastDoneAtMs: doneMs },
      reconciliation: { outcome: "aborted", endedAtMs: now, lastDoneAtMs: now - 60_000 },
    },
  });
  expect(third).not.toMatchObject({ value: { verification: { counts } } });
});

test("[U3] [M4] the ledger's clock limits reports, and one that goes back makes nobody wait", async () => {
  const c = await start({ statusEveryMs: 5_000 });
  await report(c);
  await c.clock.pass(2_000);
  expect(await report(c)).toMatchObject({
    refusal: { reason: "STATUS_TOO_EARLY", retryAfterMs: expect.any(Number) as number },
  });
  await c.clock.pass(3_000);
  expect(await report(c)).toMatchObject({ ok: true });
  c.clock.jump(-3_600_000);
  expect(await report(c, { reconciliation })).toMatchObject({ ok: true });
  expect(await report(c)).toMatchObject({ refusal: { reason: "STATUS_TOO_EARLY" } });
});

test("[U1] [A1] a revoked key reports nothing", async () => {
  const c = await start();
  const { keyId } = callerOf();
  await c.clock.runUntil(ledger(c).revoke({ ...c.envelope, keyId, expiresAtMs: Number.MAX_SAFE_INTEGER }));
  expect(await report(c)).toMatchObject({ refusal: { reason: "KEY_REVOKED" } });
  expect(count(c, "meta WHERE name = 'status'")).toBe(0);
});

test("[U1] [S3] a full ledger stores the largest status, and then decides all of its leases", async () => {
  const c = await start(small);
  const leases = await fill(c, (n) => [`n${n}`]);
  const most = Number.MAX_SAFE_INTEGER;
  const counts = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, most]));
  const { ReconciliationCounts, VerificationCounts } = openapi.components.schemas;
  const largest = {
    sdk: { name: "x".repeat(64), version: "x".repeat(64) },
    reconciliation: {
      outcome: "aborted" as const,
      isFull: true,
      startedAgoMs: 1,
      endedAgoMs: 0,
      counts: counts(Object.keys(ReconciliationCounts.properties)),
      staleLeases: most,
      unreleasedDeletions: most,
    },
    verification: {
      status: "needs_approval" as const,
      isApplied: true,
      startedAgoMs: 1,
      endedAgoMs: 0,
      counts: counts(Object.keys(VerificationCounts.properties)),
      approvalReason: "\u{1F600}".repeat(128),
    },
  };
  for (let round = 0; round < 3; round += 1) expect(await report(c, largest)).toMatchObject({ ok: true });
  const [row] = c
    .ledger("1")
    .database.prepare("SELECT octet_length(value) AS bytes FROM meta WHERE name = 'status'")
    .all();
  expect(Number(row?.["bytes"])).toBeLessThan(2_048);
  await decideAll(c, leases);
});

test("[U1] metrics and the status of the cell show what it has reported, also after a restart", async () => {
  const c = await start();
  const shown = async () => [
    await c.clock.runUntil(ledger(c).metrics(c.envelope)),
    await c.clock.runUntil(ledger(c).status(c.envelope)),
    await c.clock.runUntil(ledger(c).maintain(c.envelope)),
  ];
  for (const answer of await shown()) expect(answer).toMatchObject({ ok: true, value: { reported: null } });
  const verification = { status: "done", endedAgoMs: 0, counts: { missing: 2 } } as const;
  await report(c, { verification });
  c.ledger("1").restart();
  const reported = { sdk, verification: { status: "done", counts: { missing: 2 } } };
  for (const answer of await shown()) expect(answer).toMatchObject({ ok: true, value: { reported } });
});
