export interface BreakerOptions {
  /** How many begins in a row must get no answer until the breaker opens: 5 by default. */
  failures?: number | undefined;
  /**
   * How long the breaker stays open before one begin may probe: 500 ms by default. The time doubles with
   * every failed probe, up to 2 s, so begins work again at most 2 s after an outage.
   */
  openMs?: number | undefined;
}

export type BreakerState = "closed" | "open" | "half_open";

/** Whether the coordinator answered a begin. */
export type BeginResult = "answered" | "unknown" | "cancelled";

export interface Pass {
  isProbe: boolean;
}

/**
 * One begin in 2 s costs a process little, and no user waits longer after an outage than that.
 */
const MAX_OPEN_MS = 2_000;

/**
 * Fails begins at once while the coordinator does not answer them. Otherwise each would hold a database
 * connection until its deadline. A refusal is an answer: only unknown outcomes count.
 */
export class Breaker {
  readonly #failures: number;
  readonly #openMs: number;
  readonly #changed: (state: BreakerState) => void;
  readonly #now: () => number;
  #state: BreakerState = "closed";
  #inARow = 0;
  #opened = 0;
  #waitMs = 0;
  /** When the next begin may probe. */
  #probeAtMs = 0;

  constructor(
    { failures = 5, openMs = 500 }: BreakerOptions,
    changed: (state: BreakerState) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#failures = failures;
    this.#openMs = openMs;
    this.#changed = changed;
    this.#now = now;
  }

  /** Returns how long to wait, or a pass. The caller gives the pass back to `ended`. */
  enter(): { waitMs: number } | Pass {
    if (this.#state === "closed") return { isProbe: false };
    const waitMs = this.#probeAtMs - this.#now();
    if (waitMs > 0) return { waitMs: Math.max(1, Math.ceil(waitMs)) };
    // If this probe hangs, the next one does not wait for it.
    this.#probeAtMs = this.#now() + this.#waitMs;
    this.#become("half_open");
    return { isProbe: true };
  }

  /**
   * For begins that entered before the breaker opened, only an answer counts. While it is half open, only a
   * probe decides whether it opens again.
   */
  ended({ isProbe }: Pass, result: BeginResult): void {
    if (result === "answered") this.#close();
    else if (isProbe && this.#state !== "closed") this.#probeFailed(result);
    else if (result === "unknown" && this.#state === "closed") {
      this.#inARow += 1;
      if (this.#inARow >= this.#failures) this.#open();
    }
  }

  #probeFailed(result: "unknown" | "cancelled"): void {
    if (result === "unknown") return this.#open();
    // A cancelled begin tells nothing about the coordinator, so the next begin is the probe.
    this.#probeAtMs = this.#now();
    this.#become("open");
  }

  #open(): void {
    this.#waitMs = Math.min(Math.max(MAX_OPEN_MS, this.#openMs), this.#openMs * 2 ** this.#opened);
    this.#probeAtMs = this.#now() + this.#waitMs;
    this.#opened += 1;
    this.#become("open");
  }

  /** Also closes for a late answer to a begin from before the breaker opened. */
  #close(): void {
    this.#inARow = 0;
    this.#opened = 0;
    if (this.#state !== "closed") this.#become("closed");
  }

  #become(state: BreakerState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#changed(state);
  }
}
