import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onStopSignal } from "../../../src/hosts/workerd/on-stop-signal.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function signalled() {
  const exit = vi.fn<(code: number) => void>();
  const stop = vi.fn<() => void>();
  const target = Object.assign(new EventEmitter(), { exit });
  onStopSignal(stop, target);
  return { target, exit, stop };
}

test("the signals of one Ctrl-C, which npm passes on too, stop the process in order", () => {
  const { target, exit, stop } = signalled();
  for (const signal of ["SIGINT", "SIGINT", "SIGTERM"]) target.emit(signal);
  vi.advanceTimersByTime(999);
  target.emit("SIGINT");
  expect(stop).toHaveBeenCalledTimes(1);
  expect(exit).not.toHaveBeenCalled();
});

test.each(["SIGINT", "SIGTERM"])("a second %s a second later ends the process at once", (signal) => {
  const { target, exit, stop } = signalled();
  target.emit("SIGINT");
  vi.advanceTimersByTime(1_001);
  target.emit(signal);
  expect(exit).toHaveBeenCalledWith(130);
  expect(stop).toHaveBeenCalledTimes(1);
});
