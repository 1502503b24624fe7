import type { Random } from "../sim/random.ts";

/** Draws ranks by Zipf's law: the rank `r`, from 0, is `1 / (r + 1)` as frequent as rank 0. */
export class Zipf {
  readonly #random: Random;
  /** How much of all draws the ranks up to each one have together. */
  readonly #sums: Float64Array;

  constructor(ranks: number, random: Random) {
    this.#random = random;
    this.#sums = new Float64Array(ranks);
    let sum = 0;
    for (let rank = 0; rank < ranks; rank += 1) this.#sums[rank] = sum += 1 / (rank + 1);
    for (let rank = 0; rank < ranks; rank += 1) this.#sums[rank] = (this.#sums[rank] ?? 0) / sum;
  }

  draw(): number {
    const wanted = this.#random.next();
    let from = 0;
    for (let end = this.#sums.length - 1; from < end;) {
      const middle = (from + end) >> 1;
      if ((this.#sums[middle] ?? 1) > wanted) end = middle;
      else from = middle + 1;
    }
    return from;
  }
}
