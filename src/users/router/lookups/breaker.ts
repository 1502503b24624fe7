const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Stops questions while they fail, so that an outage doesn't cost one question for every request (Q8). After
 * some failures in a row it lets one question pass every 250 ms, then 500 ms, then 1 s.
 */
export class Breaker {
  readonly #threshold: number;
  #failures = 0;
  #pausedUntilMs = -Infinity;

  constructor(threshold: number) {
    this.#threshold = threshold;
  }

  get isOpen(): boolean {
    return this.#failures >= this.#threshold;
  }

  /** Whether a question may be sent now. */
  allows(nowMs: number): boolean {
    return !this.isOpen || nowMs >= this.#pausedUntilMs;
  }

  /**
   * Notes that a question is sent. While the breaker is open, no other one may follow until this one has an
   * answer, or for a second: the answer never comes if the request that waits for it is cancelled.
   */
  sent(nowMs: number): void {
    if (this.isOpen) this.#pausedUntilMs = nowMs + LONGEST_PAUSE_MS;
  }

  /** How long to wait for the next permission, in milliseconds. */
  remainingMs(nowMs: number): number {
    return this.isOpen ? Math.max(0, this.#pausedUntilMs - nowMs) : 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#pausedUntilMs = -Infinity;
  }

  failed(nowMs: number): void {
    this.#failures += 1;
    const doublings = this.#failures - this.#threshold;
    if (doublings >= 0)
      this.#pausedUntilMs = nowMs + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(doublings, 4));
  }
}
