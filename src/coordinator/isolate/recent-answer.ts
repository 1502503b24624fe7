import type { Result } from "../kernel/refusal.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { AgeClock, type Moment } from "./age.ts";
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
