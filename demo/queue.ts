/** What a cell's users still want. Items that must wait come back when their time has come. */
export class Queue<T> {
  #ready: T[];
  #waiting: { item: T; atMs: number }[] = [];

  constructor(items: readonly T[]) {
    // Taken from the end.
    this.#ready = items.toReversed();
  }

  get length(): number {
    return this.#ready.length + this.#waiting.length;
  }

  /**
   * Up to `most` items, in order. An empty list: all that is left has to wait. Undefined: nothing is left.
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

  /** Everything that is left. */
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
