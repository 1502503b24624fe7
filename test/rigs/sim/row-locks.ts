/**
 * Updates take shared locks: conflicts between them are about names, which are locked elsewhere. A
 * verification takes exclusive locks.
 */
type Mode = "shared" | "exclusive";

/**
 * Row locks of a database, held by transactions until they end. A transaction locks all its rows at once, so
 * no deadlock is possible.
 */
export class RowLocks {
  readonly #shared = new Map<string, number>();
  readonly #exclusive = new Set<string>();
  #waiting: (() => void)[] = [];

  /**
   * Waits until the rows are free and locks them. `rows` returns the rows that exist at that moment: a row
   * that does not exist cannot be locked. Returns a function that releases the locks.
   */
  async take(mode: Mode, rows: () => readonly string[]): Promise<() => void> {
    for (;;) {
      const keys = [...new Set(rows())];
      if (keys.every((key) => this.#isFree(key, mode))) return this.#hold(mode, keys);
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
  }

  /** Whether a verification has locked the row. */
  isLocked(key: string): boolean {
    return this.#exclusive.has(key);
  }

  #isFree(key: string, mode: Mode): boolean {
    return !this.#exclusive.has(key) && (mode === "shared" || !this.#shared.has(key));
  }

  #hold(mode: Mode, keys: readonly string[]): () => void {
    for (const key of keys) {
      if (mode === "exclusive") this.#exclusive.add(key);
      else this.#shared.set(key, (this.#shared.get(key) ?? 0) + 1);
    }
    return () => {
      for (const key of keys) this.#release(mode, key);
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resume of waiting) resume();
    };
  }

  #release(mode: Mode, key: string): void {
    if (mode === "exclusive") this.#exclusive.delete(key);
    else {
      const left = (this.#shared.get(key) ?? 0) - 1;
      if (left > 0) this.#shared.set(key, left);
      else this.#shared.delete(key);
    }
  }
}
