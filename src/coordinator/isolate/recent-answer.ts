import type { Result } from "../kernel/refusal.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { reach } from "./reach.ts";

interface Shared<T> {
  startedAt: Moment;
  doneAt: Moment | undefined;
  result: Promise<Result<T>>;
}

interface Options {
  /** Completes "... did not answer in time". */
  name: string;
  /** How long a result is kept. */
  keepMs: number;
  /** The longest time that the work takes. After that, it is started again. */
  timeoutMs: number;
}

/** Work whose result the requests of an isolate share, while it runs and for some time afterwards. */
export class RecentAnswer<T> {
  readonly #ages: AgeClock;
  readonly #options: Options;
  #latest: Shared<T> | undefined;

  constructor(clock: WallClock, options: Options) {
    this.#ages = new AgeClock(clock);
    this.#options = options;
  }

  /** Returns the recent result, or that of `work`. */
  async get(waitUntil: WaitUntil, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const latest = this.#latest;
    if (latest !== undefined && this.#isRecent(latest)) {
      const { name, timeoutMs } = this.#options;
      // This promise belongs to another request, so it needs its own timer. See `DirectoryCopy`.
      return reach(timeoutMs, { name }, () => latest.result);
    }
    const started: Shared<T> = { startedAt: this.#ages.now(), doneAt: undefined, result: work() };
    this.#latest = started;
    waitUntil(started.result.finally(() => (started.doneAt = this.#ages.now())));
    return started.result;
  }

  #isRecent({ startedAt, doneAt }: Shared<T>): boolean {
    const { keepMs, timeoutMs } = this.#options;
    return doneAt === undefined
      ? this.#ages.ageMs(startedAt) <= timeoutMs
      : this.#ages.ageMs(doneAt) <= keepMs;
  }
}

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
