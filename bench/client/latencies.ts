/** The latencies of one measurement in milliseconds. Each one is stored, so that percentiles are exact. */
export class Latencies {
  #sorted: number[] | undefined;
  readonly #all: number[] = [];

  add(ms: number): void {
    this.#all.push(ms);
    this.#sorted = undefined;
  }

  get count(): number {
    return this.#all.length;
  }

  /** NaN when no latency was added. */
  percentile(share: number): number {
    this.#sorted ??= this.#all.toSorted((a, b) => a - b);
    return (
      this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(share * this.#sorted.length))] ?? Number.NaN
    );
  }

  get all(): readonly number[] {
    return this.#all;
  }
}
