import { expect, test } from "vitest";
import { agesIn, BUCKETS_MS, Histogram } from "../../../../src/coordinator/kernel/metrics/histogram.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

async function taking(histogram: Histogram, clock: { nowMs: number }, ms: number): Promise<void> {
  await histogram.time(async () => void (clock.nowMs += ms));
}

function made(): { histogram: Histogram; clock: { nowMs: number } } {
  const clock = { nowMs: 1_000_000 };
  return { clock, histogram: new Histogram(Object.assign(new VirtualClock(), { now: () => clock.nowMs })) };
}

test("a duration is counted in the first bucket whose bound it does not exceed", async () => {
  const { histogram, clock } = made();
  for (const ms of [0, 5, 6, 250, 251, 5_000, 5_001, 90_000]) await taking(histogram, clock, ms);
  const { counts, sumMs } = histogram.durations;
  expect(Object.fromEntries([...BUCKETS_MS, "more"].map((bound, index) => [bound, counts[index]]))).toEqual({
    5: 2,
    10: 1,
    25: 0,
    50: 0,
    100: 0,
    250: 1,
    1000: 1,
    5000: 1,
    more: 2,
  });
  expect(sumMs).toBe(100_513);
});

test("[M4] a clock that goes back makes no duration negative", async () => {
  const { histogram, clock } = made();
  await taking(histogram, clock, -3_600_000);
  expect(histogram.durations).toEqual({ counts: [1, 0, 0, 0, 0, 0, 0, 0, 0], sumMs: 0 });
});

test("an age is counted in the first bucket whose bound it does not exceed", () => {
  expect(agesIn([])).toEqual({ counts: [0, 0, 0, 0, 0, 0, 0], sumMs: 0 });
  expect(agesIn([90_000_000, 600_000, 1_001, 1_000, 0])).toEqual({
    counts: [2, 1, 0, 1, 0, 0, 1],
    sumMs: 90_602_001,
  });
});

test("work that fails is not counted, and fails its caller alone", async () => {
  const { histogram } = made();
  await expect(histogram.time(() => Promise.reject(new Error("down")))).rejects.toThrow("down");
  expect(histogram.durations.sumMs).toBe(0);
  expect(histogram.durations.counts.every((count) => count === 0)).toBe(true);
});
