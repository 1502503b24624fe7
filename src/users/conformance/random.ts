/** Random choices that a seed repeats. */
export class Random {
  #state: number;

  /** @param parts the seed, and what else distinguishes this sequence */
  constructor(...parts: readonly (string | number)[]) {
    this.#state = 2_166_136_261;
    for (const char of parts.join("/"))
      this.#state = Math.imul(this.#state ^ (char.codePointAt(0) ?? 0), 16_777_619);
  }

  /** In [0, 1). The generator is mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }
}
