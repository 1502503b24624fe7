import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  ReconcileAborted,
  type ReconcileOptions,
  type ReconcileResult,
} from "../../../src/users/cell/reconcile.ts";
import { ReconcileLoop } from "../../../src/users/cell/reconcile-loop.ts";

const result: ReconcileResult = {
  counters: {
    processed: 0,
    committed: 0,
    rolledBack: 0,
    pending: 0,
    orphaned: 0,
    contradicted: 0,
    failed: 0,
  },
  findings: [],
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.restoreAllMocks().useRealTimers());

test("runs at once and about every minute, with the first run and one in 10 minutes full", async () => {
  const runs: Partial<ReconcileOptions>[] = [];
  const loop = new ReconcileLoop(async (options) => (runs.push(options), result), { staleMs: 300_000 });
  await vi.advanceTimersByTimeAsync(3 * 3_600_000);
  await loop.stop();
  expect(runs[0]).toEqual({ full: true, staleMs: 300_000 });
  expect(runs.length).toBeGreaterThan(150);
  expect(runs.length).toBeLessThan(210);
  expect(runs.filter(({ full }) => full).length).toBeGreaterThanOrEqual(15);
  expect(runs.filter(({ full }) => full).length).toBeLessThanOrEqual(19);
});

test("continues after a failed run, reports it, and repeats an aborted full run", async () => {
  const errors: unknown[] = [];
  const runs: boolean[] = [];
  const loop = new ReconcileLoop(
    async ({ full }) => {
      runs.push(full === true);
      if (runs.length < 3) throw new ReconcileAborted(new Error("the coordinator is down"), result);
      return result;
    },
    {
      onRun: ({ error }) => {
        errors.push(error);
        throw new Error("an error of the listener");
      },
    },
  );
  await vi.advanceTimersByTimeAsync(5 * 66_000);
  await loop.stop();
  expect(runs.slice(0, 4)).toEqual([true, true, true, false]);
  expect(errors[0]).toBeInstanceOf(ReconcileAborted);
  expect(errors[2]).toBeUndefined();
});

test("stops after the current run, or at once between runs", async () => {
  let end: () => void = () => {};
  const saved = vi.fn<() => Promise<void>>(async () => {});
  const run = (): Promise<ReconcileResult> => new Promise((resolve) => (end = () => resolve(result)));
  const loop = new ReconcileLoop(run, {}, saved);
  await vi.advanceTimersByTimeAsync(1);
  let isStopped = false;
  const stopped = loop.stop().then(() => (isStopped = true));
  await vi.advanceTimersByTimeAsync(1_000);
  expect([isStopped, saved.mock.calls.length]).toEqual([false, 0]);
  end();
  await stopped;
  expect(saved).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});

test("waits as long as a timer can, and refuses longer intervals, which would be none", async () => {
  let runs = 0;
  const run = async (): Promise<ReconcileResult> => ((runs += 1), result);
  vi.spyOn(Math, "random").mockReturnValue(1); // the longest wait
  const loop = new ReconcileLoop(run, { everyMs: 2 ** 31 - 1, fullEveryMs: Number.POSITIVE_INFINITY });
  await vi.advanceTimersByTimeAsync(1_000);
  await loop.stop();
  expect(runs).toBe(1);
  for (const everyMs of [2 ** 31, Number.POSITIVE_INFINITY, -1, Number.NaN])
    expect(() => new ReconcileLoop(run, { everyMs })).toThrow("`everyMs` must be from 0 to 2147483647 ms");
  expect(() => new ReconcileLoop(run, { fullEveryMs: Number.NaN })).toThrow(
    "`fullEveryMs` must be 0 or more",
  );
  expect(runs).toBe(1);
});
