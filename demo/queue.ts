/**
 * The items that a cell still has to work on. An item that was put back with a delay becomes available again
 * after that delay.
 */
export class Queue<T> {
  #ready: T[];
  #waiting: { item: T; atMs: number }[] = [];

  constructor(items: readonly T[]) {
    // `take` removes items from the end of the array, so they are stored in reverse order.
    this.#ready = items.toReversed();
  }

  get length(): number {
    return this.#ready.length + this.#waiting.length;
  }

  /**
   * Returns up to `most` items in order. Returns an empty list if all remaining items have to wait, and
   * undefined if none remain.
   */
  take(most: number): T[] | undefined {
    const now = performance.now();
    const due = this.#waiting.filter(({ atMs }) => atMs <= now);
    if (due.length > 0) {
      this.#waiting = this.#waiting.filter(({ atMs }) => atMs > now);
      this.#ready.push(...due.map(({ item }) => item));
    }
    if (this.length === 0) return undefined;
    return this.#ready.splice(Math.max(0, this.#ready.length - most), most).toReversed();
  }

  /** Returns all remaining items, including those that have to wait. */
  all(): T[] {
    return [...this.#waiting.map(({ item }) => item), ...this.#ready].toReversed();
  }

  putBack(items: readonly T[], afterMs = 0): void {
    const atMs = performance.now() + afterMs;
    if (afterMs === 0) this.#ready.push(...items);
    else this.#waiting.push(...items.map((item) => ({ item, atMs })));
  }
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resume) => setTimeout(resume, Math.max(0, ms)));
