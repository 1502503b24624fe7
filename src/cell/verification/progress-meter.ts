import type { VerificationProgress } from "./options.ts";
import type { Pass } from "./cursor.ts";

/** How far a pass over a table is, and how fast. */
export class ProgressMeter {
  readonly #pass: Pass;
  readonly #source: string;
  readonly #totalRows: number;
  readonly #onProgress: (progress: VerificationProgress) => void;
  readonly #started = performance.now();
  /** By earlier runs, from which this one goes on. */
  readonly #rowsBefore: number;
  #rows = 0;

  constructor(
    pass: Pass,
    source: string,
    { totalRows, rowsBefore }: { totalRows: number; rowsBefore: number },
    onProgress: (progress: VerificationProgress) => void,
  ) {
    this.#pass = pass;
    this.#source = source;
    this.#totalRows = totalRows;
    this.#rowsBefore = rowsBefore;
    this.#onProgress = onProgress;
  }

  add(rows: number): void {
    this.#rows += rows;
  }

  report(changes: number): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const rowsPerSecond = seconds > 0 ? this.#rows / seconds : 0;
    const rows = this.#rowsBefore + this.#rows;
    const remaining = Math.max(0, this.#totalRows - rows);
    this.#onProgress({
      pass: this.#pass,
      source: this.#source,
      rows,
      totalRows: this.#totalRows,
      changes,
      rowsPerSecond,
      remainingMs: rowsPerSecond > 0 ? (remaining / rowsPerSecond) * 1_000 : undefined,
    });
  }
}
