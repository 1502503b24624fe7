/** What the times need from the ledger's rows. */
interface Marks {
  clockMarks(): string;
  setClockMarks(marks: string, nowMs: number): void;
  lastChanges(): { position: number; atMs: number }[];
}

/** Every change up to this position was made before this time. */
export interface ClockMark {
  position: number;
  atMs: number;
}

/** A clock that goes back by less only makes an age too small by as much. */
const TOLERANCE_MS = 10_000;
/** The marks that are kept. Without the oldest ones, some old changes look younger than they are. */
const MAX_MARKS = 20;

/**
 * The times of a ledger's changes, for ages. A clock that was ahead for some time stamped changes in the
 * future. So whenever the clock is found to have gone back, a mark stores the new time together with the last
 * position: all changes up to there are older than that, whatever their stamps say (M4).
 */
export class ChangeTimes {
  readonly #store: Marks;
  #marks: readonly ClockMark[];
  #latestMs: number;

  constructor(store: Marks) {
    this.#store = store;
    this.#marks = JSON.parse(store.clockMarks()) as ClockMark[];
    this.#latestMs = Math.max(
      0,
      ...store.lastChanges().map(({ position, atMs }) => this.timeOf(position, atMs)),
    );
  }

  /** The time of the latest change. */
  get latestMs(): number {
    return this.#latestMs;
  }

  /** True if the clock went back and no mark says so yet. */
  isBehind(nowMs: number): boolean {
    return nowMs < this.#latestMs - TOLERANCE_MS;
  }

  /**
   * Must be called in the transaction of each change, before the change gets its position. Stores a mark if
   * the clock went back. `lastPosition` is the largest position so far.
   */
  note(nowMs: number, lastPosition: number): void {
    if (this.isBehind(nowMs)) {
      const older = this.#marks.filter(({ atMs }) => atMs < nowMs);
      this.#marks = [...older, { position: lastPosition, atMs: nowMs }].slice(-MAX_MARKS);
      this.#store.setClockMarks(JSON.stringify(this.#marks), nowMs);
      this.#latestMs = nowMs;
    }
    this.#latestMs = Math.max(this.#latestMs, nowMs);
  }

  /** Returns when a change was made, as far as the ledger knows. `stampedMs` is the clock's time of then. */
  timeOf(position: number, stampedMs: number): number {
    let atMs = stampedMs;
    for (const mark of this.#marks) if (position <= mark.position) atMs = Math.min(atMs, mark.atMs);
    return atMs;
  }
}
