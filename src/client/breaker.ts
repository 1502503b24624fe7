export interface BreakerOptions {
  /** Begins in a row without an answer until it opens: 5 by default. */
  failures?: number | undefined;
  /** How long it stays open before one begin may try: 1 s by default. Doubles with every try that fails, up to 30 s. */
  openMs?: number | undefined;
}

export type BreakerState = "closed" | "open" | "half_open";

/** Of a begin, as far as it says whether the coordinator answers. */
export type BeginResult = "answered" | "unknown" | "cancelled";

export interface Pass {
  isProbe: boolean;
}

const MAX_OPEN_MS = 30_000;

/**
 * Lets begins fail at once while the coordinator does not answer them, instead of each holding a database connection until its deadline.
 * A refusal is an answer: only unknown outcomes count.
 */
export class Breaker {
  readonly #failures: number;
  readonly #openMs: number;
  readonly #changed: (state: BreakerState) => void;
  readonly #now: () => number;
  #state: BreakerState = "closed";
  #inARow = 0;
  #opened = 0;
  #openUntilMs = 0;

  constructor(
    { failures = 5, openMs = 1_000 }: BreakerOptions,
    changed: (state: BreakerState) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#failures = failures;
    this.#openMs = openMs;
    this.#changed = changed;
    this.#now = now;
  }

  /** How long to wait instead; or a pass, to be given back to `ended`. */
  enter(): { waitMs: number } | Pass {
    if (this.#state === "closed") return { isProbe: false };
    const waitMs = this.#openUntilMs - this.#now();
    if (this.#state === "half_open" || waitMs > 0) return { waitMs: Math.max(1, Math.ceil(waitMs)) };
    this.#become("half_open");
    return { isProbe: true };
  }

  /** Of those that entered before it opened only an answer counts; while it is half open only the probe tells whether it opens again. */
  ended({ isProbe }: Pass, result: BeginResult): void {
    if (result === "answered") this.#close();
    else if (isProbe) {
      // A cancelled one says nothing about the coordinator: the next begin is the probe.
      if (result === "unknown") this.#open();
      else this.#become("open");
    } else if (result === "unknown" && this.#state === "closed") {
      this.#inARow += 1;
      if (this.#inARow >= this.#failures) this.#open();
    }
  }

  #open(): void {
    this.#openUntilMs = this.#now() + Math.min(MAX_OPEN_MS, this.#openMs * 2 ** this.#opened);
    this.#opened += 1;
    this.#become("open");
  }

  /** Also when a begin from before it opened is answered late: an answer is an answer. */
  #close(): void {
    this.#inARow = 0;
    this.#opened = 0;
    if (this.#state !== "closed") this.#become("closed");
  }

  #become(state: BreakerState): void {
    this.#state = state;
    this.#changed(state);
  }
}
