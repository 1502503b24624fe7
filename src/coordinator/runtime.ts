import type { Clock } from "./kernel/ports.ts";
import { logEvent } from "./log.ts";

/** The part of a clock that callers of objects and of D1 need. */
export type WallClock = Pick<Clock, "now" | "after">;

export const wallClock: WallClock = {
  now: () => Date.now(),
  after: (delayMs, then) => {
    const timer = setTimeout(then, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Keeps the runtime from dropping unfinished work when the request that started it ends or is cancelled. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** What the Worker uses of its runtime besides the bindings. Tests pass their own. */
export interface Runtime {
  clock: WallClock;
  uuid: () => string;
  /** At least 0 and less than 1. */
  fraction: () => number;
  log: typeof logEvent;
  /** The newest format that the code speaks. Only the simulator sets it. */
  speaks?: number;
}

export const defaultRuntime: Runtime = {
  clock: wallClock,
  uuid: () => crypto.randomUUID(),
  fraction: () => Math.random(),
  log: logEvent,
};
