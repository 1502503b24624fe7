import type { WallClock } from "../runtime.ts";

/** A moment, for `AgeClock.ageMs`. */
export interface Moment {
  atMs: number;
  steps: number;
}

/**
 * Measures ages on a clock that may be set back. An isolate has no clock that is monotonic: in workerd
 * `performance.now()` is `Date.now()` (workerd 1.20261102.1: with the wall clock an hour back, both were an
 * hour back), and both stand still between two events (developers.cloudflare.com/workers/runtime-apis/
 * performance). Only timers are monotonic, and they end with their request. So when the clock is seen going
 * back, every earlier moment counts as infinitely old. A step back that ends after the last time that this
 * clock was read cannot be seen: it makes moments look younger by the time in which nothing was read.
 */
export class AgeClock {
  readonly #clock: WallClock;
  #latestMs = Number.NEGATIVE_INFINITY;
  #steps = 0;

  constructor(clock: WallClock) {
    this.#clock = clock;
  }

  now(): Moment {
    const atMs = this.#clock.now();
    if (atMs < this.#latestMs) this.#steps += 1;
    this.#latestMs = atMs;
    return { atMs, steps: this.#steps };
  }

  /** Milliseconds since `moment`; Infinity if the clock was set back since. */
  ageMs({ atMs, steps }: Moment): number {
    const now = this.now();
    return now.steps === steps ? now.atMs - atMs : Number.POSITIVE_INFINITY;
  }
}
