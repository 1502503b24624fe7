/** What one kind of call took. */
export interface Latencies {
  op: string;
  count: number;
  per_second: number;
  p50_ms: number | null;
  p90_ms: number | null;
  p99_ms: number | null;
  max_ms: number | null;
  /** By the code of the error. */
  failed: Readonly<Record<string, number>>;
}

/** Collects the times of calls. A run is bounded, so all of them fit into memory. */
export class LatencyRecorder {
  readonly #op: string;
  readonly #tookMs: number[] = [];
  readonly #failed = new Map<string, number>();

  constructor(op: string) {
    this.#op = op;
  }

  answered(tookMs: number): void {
    this.#tookMs.push(tookMs);
  }

  failed(code: string): void {
    this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
  }

  summary(durationMs: number): Latencies {
    const sorted = Float64Array.from(this.#tookMs).toSorted();
    const at = (part: number): number | null => {
      const value = sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
      return value === undefined ? null : Math.round(value * 100) / 100;
    };
    return {
      op: this.#op,
      count: sorted.length,
      per_second: Math.round((sorted.length / Math.max(1, durationMs)) * 10_000) / 10,
      p50_ms: at(0.5),
      p90_ms: at(0.9),
      p99_ms: at(0.99),
      max_ms: at(1),
      failed: Object.fromEntries(this.#failed),
    };
  }
}
