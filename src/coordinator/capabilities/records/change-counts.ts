import type { Randomness } from "../../kernel/ports.ts";

/**
 * Counts the changes of each cell's holds on this shard. A claim changes only when its hold ends, so while
 * the count of a cell stays the same, none of its claims and holds has changed (R4). In memory only: the
 * versions of another instance never match.
 */
export class ChangeCounts {
  readonly #randomness: Randomness;
  readonly #counts = new Map<string, number>();
  #instance: string | undefined;

  constructor(randomness: Randomness) {
    this.#randomness = randomness;
  }

  /** To be called for every hold that is made or ends. */
  add(cell: string): void {
    this.#counts.set(cell, (this.#counts.get(cell) ?? 0) + 1);
  }

  /** To be called when the claims of many cells change without holds. All earlier texts are void. */
  reset(): void {
    this.#instance = undefined;
  }

  /** Returns a text that differs from all earlier ones if anything has changed since. */
  versionOf(cell: string): string {
    this.#instance ??= this.#randomness.uuid();
    return `${this.#instance}.${this.#counts.get(cell) ?? 0}`;
  }
}
