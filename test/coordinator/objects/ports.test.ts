import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Timers } from "../../../src/coordinator/objects/ports.ts";

beforeEach(() => void vi.useFakeTimers({ now: 1_000_001 }));
afterEach(() => {
  // Restore mocks first: they bring back the fake timers.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("deadlines in the same window share a timer; none ends early or more than a window late", () => {
  const timers = new Timers();
  const ended: [number, number][] = [];
  for (let index = 0; index < 50; index += 1) {
    const dueMs = Date.now() + 3_000;
    timers.after(3_000, () => ended.push([dueMs, Date.now()]));
    vi.advanceTimersByTime(1);
  }
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(4_000);
  expect(ended).toHaveLength(50);
  for (const [dueMs, atMs] of ended) {
    expect(atMs).toBeGreaterThanOrEqual(dueMs);
    expect(atMs).toBeLessThanOrEqual(dueMs + 100);
  }
  expect(vi.getTimerCount()).toBe(0);
});

test("a cancelled deadline does not end", () => {
  const timers = new Timers();
  const ended: string[] = [];
  const cancels = ["a", "b", "c"].map((name) => timers.after(3_000, () => ended.push(name)));
  cancels[1]?.();
  cancels[1]?.();
  vi.advanceTimersByTime(3_100);
  expect(ended).toEqual(["a", "c"]);

  const again = ["d", "e"].map((name) => timers.after(3_000, () => ended.push(name)));
  for (const cancel of again) cancel();
  // A deadline that has ended is cancelled late. That must not end the next one in the same window.
  timers.after(3_000, () => ended.push("f"));
  for (const cancel of [...cancels, ...again]) cancel();
  vi.advanceTimersByTime(3_100);
  expect(ended).toEqual(["a", "c", "f"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("no timer is cleared, and none is set when nothing waits any more", () => {
  const cleared = vi.spyOn(globalThis, "clearTimeout");
  const set = vi.spyOn(globalThis, "setTimeout");
  const timers = new Timers();
  for (let call = 0; call < 1_000; call += 1) timers.after(3_000, () => {})();
  expect(set).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(100);
  expect(vi.getTimerCount()).toBe(0);
  expect(set).toHaveBeenCalledTimes(1);
  expect(cleared).not.toHaveBeenCalled();
});

test("[M4] a clock that goes back lengthens no deadline", () => {
  const timers = new Timers();
  const ended: string[] = [];
  timers.after(3_000, () => ended.push("a"));
  vi.advanceTimersByTime(1_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  timers.after(1_000, () => ended.push("b"));
  vi.advanceTimersByTime(1_100);
  expect(ended).toEqual(["b"]);
  vi.advanceTimersByTime(1_000);
  expect(ended).toEqual(["b", "a"]);
});

test("a pause ends exactly on time", () => {
  const timers = new Timers();
  const ended: number[] = [];
  timers.after(5, () => ended.push(Date.now()));
  const cancel = timers.after(6, () => ended.push(0));
  cancel();
  vi.advanceTimersByTime(10);
  expect(ended).toEqual([1_000_006]);
});
