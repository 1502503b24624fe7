/** Tests that `npm start` restarts its runtime when the machine's clock is set back. */
import { afterEach, expect, test, vi } from "vitest";
import { watchClock } from "../../../src/hosts/workerd/runtime-watch.ts";

afterEach(() => void vi.useRealTimers());

test("only a step back of more than a second restarts, and once at a time", async () => {
  vi.useFakeTimers();
  let nowMs = 1_000_000;
  const restarts: { backMs: number; end: () => void }[] = [];
  const stop = watchClock(
    (backMs) => new Promise((end) => restarts.push({ backMs, end })),
    () => nowMs,
  );
  const step = async (byMs: number): Promise<number[]> => {
    nowMs += byMs;
    await vi.advanceTimersByTimeAsync(1_000);
    return restarts.map(({ backMs }) => backMs);
  };
  expect(await step(3_600_000)).toEqual([]);
  expect(await step(-1_000)).toEqual([]);
  // Timers wait for the latest time that the runtime has seen, so small steps add up.
  expect(await step(-1)).toEqual([1_001]);
  // The runtime may have been started again before this step, or after it.
  expect(await step(-5_000)).toEqual([1_001]);
  restarts[0]?.end();
  expect(await step(0)).toEqual([1_001, 5_000]);
  restarts[1]?.end();
  expect(await step(0)).toEqual([1_001, 5_000]);
  stop();
  expect(await step(-5_000)).toEqual([1_001, 5_000]);
});
