import type { VerificationProgress } from "./options.ts";
import type { Pass } from "./cursor.ts";

/** How far a pass over a table is, and how fast. */
export class Pace {
  readonly #pass: Pass;
  readonly #source: string;
  readonly #ofRows: number;
  readonly #hear: (progress: VerificationProgress) => void;
  readonly #started = performance.now();
  /** By earlier runs, from which this one goes on. */
  readonly #before: number;
  #rows = 0;

  constructor(
    pass: Pass,
    source: string,
    { ofRows, before }: { ofRows: number; before: number },
    hear: (progress: VerificationProgress) => void,
  ) {
    this.#pass = pass;
    this.#source = source;
    this.#ofRows = ofRows;
    this.#before = before;
    this.#hear = hear;
  }

  add(rows: number): void {
    this.#rows += rows;
  }

  tell(changes: number): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const rowsPerSecond = seconds > 0 ? this.#rows / seconds : 0;
    const rows = this.#before + this.#rows;
    const left = Math.max(0, this.#ofRows - rows);
    this.#hear({
      pass: this.#pass,
      source: this.#source,
      rows,
      ofRows: this.#ofRows,
      changes,
      rowsPerSecond,
      remainingMs: rowsPerSecond > 0 ? (left / rowsPerSecond) * 1_000 : undefined,
    });
  }
}
