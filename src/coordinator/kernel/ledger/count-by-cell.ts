/** Counts what runs for each cell. */
export class CountByCell {
  readonly #counts = new Map<string, number>();

  of(cell: string): number {
    return this.#counts.get(cell) ?? 0;
  }

  /** Counts one more until the returned function is called. */
  add(cell: string): () => void {
    this.#counts.set(cell, this.of(cell) + 1);
    return () => {
      const left = this.of(cell) - 1;
      if (left > 0) this.#counts.set(cell, left);
      else this.#counts.delete(cell);
    };
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}
