/** Positions of one millisecond; more of them borrow from the next. 2^53 / 1024 ms lasts until the year 2248. */
const PER_MS = 1_024;

/** The first position of a moment. */
export const positionAt = (ms: number): number => ms * PER_MS;

export const msOf = (position: number): number => Math.floor(position / PER_MS);

/**
 * Orders the changes of one ledger: each is larger than all before, whatever the clock does (rule M4), and near the clock when it runs well,
 * so that a position also tells a change's time.
 */
export class Positions {
  #last: number;

  constructor(last: number) {
    this.#last = last;
  }

  next(nowMs: number): number {
    this.#last = Math.max(this.#last + 1, positionAt(nowMs));
    return this.#last;
  }
}
