/**
 * Pseudorandom numbers from a seed. Each use has its own stream, so its numbers do not depend on other work.
 */
export class Random {
  #state: number;

  constructor(...seed: (string | number)[]) {
    this.#state = hash(seed.join("\u0000"));
  }

  /** Returns a number from 0 (included) to 1 (excluded), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** Returns a whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const keyed = items.map((item) => ({ item, key: this.next() }));
    return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
  }

  /** Returns a UUID of version 4. */
  uuid(): string {
    const digits = Array.from({ length: 32 }, () => this.between(0, 15).toString(16));
    digits[12] = "4";
    digits[16] = "89ab".charAt(this.between(0, 3));
    return digits.join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }
}

/** FNV-1a with a final mixing step, so that texts with the same beginning get unrelated seeds. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
