import type { Clock } from "../ports.ts";

/** Upper bounds of the buckets. The last one is the default deadline of a begin. */
export const BUCKETS_MS = [5, 10, 25, 50, 100, 250, 1_000, 5_000] as const;

/** Durations, as a message carries them. */
export interface Durations {
  /** The number of durations in each bucket, and above all of them at the end. */
  counts: number[];
  sumMs: number;
}

/** Counts durations in buckets, in memory only: a new instance starts at 0. */
export class Histogram {
  readonly #clock: Clock;
  readonly #counts: number[] = [...BUCKETS_MS, Infinity].map(() => 0);
  #sumMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts how long `work` takes, if it succeeds. The caller keeps its own promise, so this changes neither
   * the answer nor the order of events.
   */
  time<T>(work: () => Promise<T>): Promise<T> {
    const startedAtMs = this.#clock.now();
    const answer = work();
    void answer.then(
      // The clock may have gone back.
      () => this.#add(Math.max(0, this.#clock.now() - startedAtMs)),
      () => {},
    );
    return answer;
  }

  #add(ms: number): void {
    const fitting = BUCKETS_MS.findIndex((bound) => ms <= bound);
    const bucket = fitting < 0 ? BUCKETS_MS.length : fitting;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sumMs += ms;
  }

  get durations(): Durations {
    return { counts: [...this.#counts], sumMs: this.#sumMs };
  }
}
