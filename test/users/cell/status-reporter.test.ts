import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReconcileLoop } from "../../../src/users/cell/reconcile-loop.ts";
import { SDK } from "../../../src/users/cell/sdk.ts";
import { StatusReporter } from "../../../src/users/cell/status-reporter.ts";
import { noCounts, type VerificationReport } from "../../../src/users/cell/verification/report.ts";
import { ResourceExhaustedError, type StatusReport } from "../../../src/users/client/index.ts";

const counters = {
  processed: 3,
  committed: 1,
  rolledBack: 2,
  pending: 0,
  orphaned: 0,
  contradicted: 0,
  failed: 1,
};
const result = {
  counters,
  findings: [{ kind: "failed" as const, uuid: "a", step: "rollback" as const, error: "down" }],
  deferred: { done: 5, postponed: 2, refused: 1, dropped: 0 },
};
const run = { full: true, result, error: undefined };

const reportOf = (more: Partial<VerificationReport>): VerificationReport => ({
  status: "done",
  applied: true,
  cell: "7",
  resumed: false,
  startedAt: "2026-11-20T12:00:00.000Z",
  durationMs: 2_000,
  counts: { ...noCounts(), missing: 4, otherCell: 1 },
  tables: {},
  items: [],
  decisionsOmitted: 0,
  itemsOmitted: 0,
  ...more,
});

const tooEarly = () =>
  new ResourceExhaustedError("too early", {
    code: "RESOURCE_EXHAUSTED",
    reason: "STATUS_TOO_EARLY",
    retryable: true,
    retryAfterMs: 3_000,
  });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the reported version is that of the package", () => {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  expect(SDK.version).toBe((JSON.parse(text) as { version: string }).version);
});

test("sends what a reconciliation did, with ages, and 10 s later what came meanwhile, together", async () => {
  const sent: StatusReport[] = [];
  const reporter = new StatusReporter(async (report) => void sent.push(report));
  reporter.reconciled(run, performance.now());
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual([
    {
      sdk: SDK,
      reconciliation: {
        outcome: "done",
        is_full: true,
        counts: expect.objectContaining({ processed: 3, rolled_back: 2 }) as unknown,
        stale_leases: 1,
        unreleased_deletions: 3,
        started_ago_ms: 0,
        ended_ago_ms: 0,
      },
    },
  ]);
  reporter.reconciled({ ...run, error: new Error("down") }, performance.now());
  reporter.verified({ report: reportOf({}), error: undefined });
  await vi.advanceTimersByTimeAsync(9_000);
  expect(sent).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toMatchObject({
    reconciliation: { outcome: "aborted", ended_ago_ms: 10_000 },
    verification: {
      status: "done",
      is_applied: true,
      counts: { missing: 4, other_cell: 1 },
      started_ago_ms: 12_000,
      ended_ago_ms: 10_000,
    },
  });
  await reporter.stop();
});

test("does not report runs that did nothing, and reports a failed one", async () => {
  const sent: StatusReport[] = [];
  const reporter = new StatusReporter(async (report) => void sent.push(report));
  for (const status of ["no_slot", "not_due", "slot_lost"] as const)
    reporter.verified({ report: reportOf({ status }), error: undefined });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual([]);
  reporter.verified({ report: reportOf({ status: "stopped" }), error: new Error("down") });
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toMatchObject([{ verification: { status: "failed" } }]);
});

test("[U3] a report that came too early comes again, one at a time, until the next run", async () => {
  let [attempts, underWay, most] = [0, 0, 0];
  const reporter = new StatusReporter(async () => {
    attempts += 1;
    most = Math.max(most, (underWay += 1));
    await new Promise((resume) => setTimeout(resume, 1_000));
    underWay -= 1;
    throw tooEarly();
  });
  reporter.reconciled(run, performance.now());
  for (let n = 0; n < 5; n += 1) {
    await vi.advanceTimersByTimeAsync(100);
    reporter.reconciled(run, performance.now());
  }
  await vi.advanceTimersByTimeAsync(600_000);
  expect({ attempts, most }).toEqual({ attempts: 3, most: 1 });
  reporter.reconciled(run, performance.now());
  await vi.advanceTimersByTimeAsync(0);
  expect(attempts).toBe(4);
  const stopped = reporter.stop();
  await vi.advanceTimersByTimeAsync(1_000);
  await stopped;
});

test("a report that never ends or fails disturbs no run", async () => {
  const reporter = new StatusReporter(() => new Promise(() => {}));
  let runs = 0;
  const loop = new ReconcileLoop(async () => ((runs += 1), result), {
    onRun: (each) => reporter.reconciled(each, performance.now()),
  });
  await vi.advanceTimersByTimeAsync(600_000);
  await loop.stop();
  expect(runs).toBeGreaterThan(8);
});
