import type { Clock } from "../ports.ts";

/** Upper bounds of the buckets. The last one is the default deadline of a begin. */
export const BUCKETS_MS = [5, 10, 25, 50, 100, 250, 1_000, 5_000] as const;

/** Upper bounds of the buckets of ages. 10 minutes are the default of `staleS`. */
export const AGE_BUCKETS_MS = [1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000] as const;

/** Durations, as a message carries them. */
export interface Durations {
  /** The number of durations in each bucket, and above all of them at the end. */
  counts: number[];
  sumMs: number;
}

/** Counts ages in buckets. */
export function agesIn(agesMs: readonly number[]): Durations {
  const ages: Durations = { counts: [...AGE_BUCKETS_MS, Infinity].map(() => 0), sumMs: 0 };
  for (const ageMs of agesMs) {
    countIn(ages.counts, AGE_BUCKETS_MS, ageMs);
    ages.sumMs += ageMs;
  }
  return ages;
}

function countIn(counts: number[], boundsMs: readonly number[], ms: number): void {
  const fitting = boundsMs.findIndex((bound) => ms <= bound);
  const bucket = fitting < 0 ? boundsMs.length : fitting;
  counts[bucket] = (counts[bucket] ?? 0) + 1;
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
    countIn(this.#counts, BUCKETS_MS, ms);
    this.#sumMs += ms;
  }

  get durations(): Durations {
    return { counts: [...this.#counts], sumMs: this.#sumMs };
  }
}
