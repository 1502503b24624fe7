import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  nextStartMs,
  startOffsetMs,
  VerificationLoop,
} from "../../../../src/users/cell/verification/loop.ts";
import type { VerifyOptions } from "../../../../src/users/cell/verification/options.ts";
import {
  noCounts,
  type VerificationReport,
  type VerificationStatus,
} from "../../../../src/users/cell/verification/report.ts";

const HOUR_MS = 3_600_000;

const reported = (
  status: VerificationStatus,
  more: Partial<VerificationReport> = {},
): VerificationReport => ({
  status,
  applied: true,
  cell: "1",
  resumed: false,
  startedAt: "",
  durationMs: 0,
  counts: noCounts(),
  tables: {},
  items: [],
  decisionsOmitted: 0,
  itemsOmitted: 0,
  ...more,
});

describe("when a cell verifies", () => {
  test("each cell has its own start time, which is in the future", () => {
    const everyMs = 8 * HOUR_MS;
    const now = Date.parse("2026-11-20T12:00:00Z");
    const next = nextStartMs("7", everyMs, now);
    expect([next > now, next <= now + everyMs]).toEqual([true, true]);
    expect(nextStartMs("7", everyMs, next - 1)).toBe(next);
    expect(nextStartMs("7", everyMs, next)).toBe(next + everyMs);
  });

  test("a hundred cells are spread over the period", () => {
    const eighths = new Set(
      Array.from({ length: 100 }, (_, cell) =>
        Math.floor(startOffsetMs(String(cell), 8 * HOUR_MS) / HOUR_MS),
      ),
    );
    expect(eighths.size).toBe(8);
  });
});

describe("the loop", () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.parse("2026-11-20T12:00:00Z") }));
  afterEach(() => void vi.useRealTimers());

  function started(
    answers: readonly (VerificationReport | Error)[],
    options: ConstructorParameters<typeof VerificationLoop>[2] = {},
  ) {
    const seen: VerifyOptions[] = [];
    const starts: number[] = [];
    const heard: unknown[] = [];
    const loop = new VerificationLoop(
      "7",
      async (given) => {
        starts.push(Date.now());
        seen.push(given);
        const answer = answers[Math.min(seen.length, answers.length) - 1] ?? reported("done");
        if (answer instanceof Error) throw answer;
        return answer;
      },
      { ...options, onRun: ({ report, error }) => heard.push(report?.status ?? (error as Error).message) },
    );
    return { loop, seen, starts, heard };
  }

  test("runs once in a period, and every third time without digests", async () => {
    const { loop, seen, starts } = started([], { everyMs: HOUR_MS, fullEvery: 3, maxMs: 5 });
    await vi.advanceTimersByTimeAsync(6 * HOUR_MS);
    expect(seen.map(({ maxMs, unlessDoneWithinMs }) => [maxMs, unlessDoneWithinMs])).toEqual(
      seen.map(() => [5, HOUR_MS / 2]),
    );
    const whole = starts.filter((_, index) => seen[index]?.digests === false);
    expect([starts.length, whole.length]).toEqual([6, 2]);
    // The full runs are the same in every process, and after every restart.
    expect(whole.map((ms) => Math.floor(ms / HOUR_MS) % 3)).toEqual([0, 0]);
    expect(starts.map((ms) => ms % HOUR_MS)).toEqual(starts.map(() => startOffsetMs("7", HOUR_MS)));
    await loop.stop();
  });

  test("continues after `maxMs`, waits for a slot, retries failures, and stops for approval", async () => {
    const answers = [
      reported("out_of_time"),
      reported("no_slot", { retryAfterMs: 60_000 }),
      new Error("no route"),
      reported("needs_approval"),
    ];
    const { loop, starts, heard } = started(answers, { everyMs: 8 * HOUR_MS, retryMs: 10_000 });
    await vi.advanceTimersByTimeAsync(8 * HOUR_MS);
    expect(heard).toEqual(["out_of_time", "no_slot", "no route", "needs_approval"]);
    const waits = starts.slice(1).map((ms, index) => ms - (starts[index] ?? 0));
    expect(waits[0]).toBeLessThan(10);
    // Later, it could lose its place in the queue.
    expect(waits[1]).toBeGreaterThanOrEqual(60_000);
    expect(waits[1]).toBeLessThanOrEqual(66_000);
    expect(waits[2]).toBeGreaterThanOrEqual(5_000);
    expect(waits[2]).toBeLessThan(15_000);
    await loop.stop();
  });

  test("stops at once while it waits, and aborts a current run", async () => {
    const { loop, seen } = started([]);
    await loop.stop();
    expect(seen).toEqual([]);
    const under = started([reported("stopped")], { everyMs: HOUR_MS });
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    const stopped = under.loop.stop();
    expect(under.seen[0]?.signal?.aborted).toBe(true);
    await stopped;
  });
});
