/** The most alarms that run at once. */
const MAX_AT_ONCE = 8;

/**
 * Runs the alarms of all objects of a host, in the order in which they became due, a few at a time. After a
 * long stop the alarms of all objects are due at once, and requests must not wait for all of them.
 */
export class AlarmQueue {
  /** Alarms that are due and have not begun. */
  readonly #waiting = new Set<() => Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #isHeld = false;

  /** Adds an alarm that is due. Returns a function that removes it, if it has not begun. */
  add(ring: () => Promise<void>): () => void {
    this.#waiting.add(ring);
    this.#startNext();
    return () => void this.#waiting.delete(ring);
  }

  /** Begins no alarm before `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#startNext();
  }

  /** Waits until no alarm is running or due. */
  async untilIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Every alarm that ends starts another one, so alarms wait only while others run, or while held. */
  #startNext(): void {
    for (const ring of this.#waiting) {
      if (this.#isHeld || this.#running.size >= MAX_AT_ONCE) return;
      this.#waiting.delete(ring);
      const running = ring().finally(() => {
        this.#running.delete(running);
        this.#startNext();
      });
      this.#running.add(running);
    }
  }
}
