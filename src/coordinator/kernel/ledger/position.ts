/**
 * Positions per millisecond. If one millisecond needs more, positions of the next one are used. Positions
 * stay below 2^53 until the year 2248.
 */
const PER_MS = 1_024;

/** Returns the first position of a millisecond. */
export const positionAt = (ms: number): number => ms * PER_MS;

export const msOf = (position: number): number => Math.floor(position / PER_MS);

/** A clock that is beyond the year 2109 is wrong. Positions do not follow it, so that they stay exact. */
const LATEST_FROM_CLOCK = 2 ** 52;

/**
 * Assigns positions to the changes of one ledger. Each position is larger than all before it, whatever the
 * clock does (M4). As long as the clock was never ahead, a position also tells the time of its change.
 */
export class Positions {
  #last: number;

  constructor(last: number) {
    this.#last = last;
  }

  /** The position that was assigned last. */
  get last(): number {
    return this.#last;
  }

  /** Makes sure that all later positions are above this one. */
  raiseTo(position: number): void {
    this.#last = Math.max(this.#last, position);
  }

  next(nowMs: number): number {
    const fromClock = positionAt(nowMs);
    this.#last = Math.max(this.#last + 1, fromClock <= LATEST_FROM_CLOCK ? fromClock : 0);
    return this.#last;
  }
}
