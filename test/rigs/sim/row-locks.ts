/** Updates share the rows that they change: names of one row are told apart elsewhere. A verification has its rows to itself. */
type Mode = "shared" | "exclusive";

/** Row locks of a database, held by its transactions until they end. All rows of a transaction are locked at once, so nobody waits in a circle. */
export class RowLocks {
  readonly #shared = new Map<string, number>();
  readonly #exclusive = new Set<string>();
  #waiting: (() => void)[] = [];

  /** Waits for the rows; `rows` says which there are by then: what is not there cannot be locked. The returned function lets go of them. */
  async take(mode: Mode, rows: () => readonly string[]): Promise<() => void> {
    for (;;) {
      const keys = [...new Set(rows())];
      if (keys.every((key) => this.#isFree(key, mode))) return this.#hold(mode, keys);
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
  }

  /** By a verification. */
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
