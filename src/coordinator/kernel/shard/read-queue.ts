import { FairQueue } from "../fair-queue.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Clock } from "../ports.ts";
import { refused, type Result } from "../refusal.ts";

/**
 * After a read of this many rows, a shard reads no others for a millisecond. So reads take a small part of
 * its time, however many there are, and begins and commits get the rest.
 */
const ROWS_PER_MS = 250;

/** The number of reads of one cell that may wait. */
const MAX_WAITING = 100;

/** Who the work of operators belongs to, which takes its turn like the work of a cell. */
export const OPERATORS = "operators";

/** Runs reads of many claims of a cell. */
export interface ClaimReads {
  run<T>(cell: string, read: () => { value: T; rows: number }): Promise<Result<T>>;
}

interface Waiting {
  enter: () => void;
  /** True once the caller has been refused. */
  isOver: boolean;
}

/** Admits reads of many rows one at a time, in turn by cell. */
export class ReadQueue implements ClaimReads {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #waiting = new FairQueue<Waiting>();
  #isBusy = false;

  constructor(clock: Clock, { exchangeTimeoutMs }: Limits) {
    this.#clock = clock;
    this.#timeoutMs = exchangeTimeoutMs;
  }

  /** The number of reads that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Runs a read when it is its turn. The read is synchronous, and says how many rows it has read. A read that
   * has to wait too long is refused, because its caller gives up too.
   */
  async run<T>(cell: string, read: () => { value: T; rows: number }): Promise<Result<T>> {
    if (this.#isBusy && !(await this.#wait(cell)))
      return refused("UNAVAILABLE", "the shard has too many reads of this cell to carry out", {
        retryAfterMs: 1_000,
      });
    this.#isBusy = true;
    let rows = 0;
    try {
      const done = read();
      ({ rows } = done);
      return { ok: true, value: done.value };
    } finally {
      this.#rest(Math.floor(rows / ROWS_PER_MS));
    }
  }

  #wait(cell: string): Promise<boolean> {
    if (this.#waiting.lengthOf(cell) >= MAX_WAITING) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiting: Waiting = { enter: () => {}, isOver: false };
      const cancel = this.#clock.after(this.#timeoutMs, () => {
        waiting.isOver = true;
        resolve(false);
      });
      waiting.enter = () => {
        cancel();
        resolve(true);
      };
      this.#waiting.push(cell, waiting);
    });
  }

  #rest(restMs: number): void {
    if (restMs === 0 && this.#waiting.length === 0) this.#isBusy = false;
    else this.#clock.after(restMs, () => this.#next());
  }

  /** Lets the next read in. `#isBusy` stays true, so that no newcomer can take its turn. */
  #next(): void {
    for (;;) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        this.#isBusy = false;
        return;
      }
      if (next.isOver) continue;
      next.enter();
      return;
    }
  }
}
