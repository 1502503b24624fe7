/**
 * A seeded generator (sfc32). One stream per purpose, named by a path: what one stream draws does not move
 * the others.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  private constructor(a: number, b: number, c: number, d: number) {
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
    for (let warm = 0; warm < 12; warm += 1) this.next();
  }

  static of(...path: readonly (string | number)[]): Random {
    const [a, b, c] = [1, 2, 3].map((salt) => hash(`${salt}/${path.join("/")}`));
    return new Random(a ?? 0, b ?? 0, c ?? 0, 1);
  }

  /** In [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** With this mean; most are short and a few are long. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  /** Some of them, in random order; at least one, at most `most`. */
  some<T>(items: readonly T[], most: number): T[] {
    return this.shuffle(items).slice(0, this.between(1, Math.min(most, items.length)));
  }

  /** All items, in random order. */
  shuffle<T>(items: readonly T[]): T[] {
    const keyed = items.map((item) => ({ item, key: this.next() })).toSorted((a, b) => a.key - b.key);
    return keyed.map(({ item }) => item);
  }

  /** By weight; an entry of weight 0 is never taken. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [kind, weight] of entries) if ((left -= weight) < 0) return kind;
    throw new Error("all weights are 0");
  }

  uuid(): string {
    const hex = Array.from({ length: 4 }, () =>
      Math.floor(this.next() * 2 ** 32)
        .toString(16)
        .padStart(8, "0"),
    ).join("");
    const [time, mid, high] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(13, 16)];
    return `${time}-${mid}-4${high}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}

/** FNV-1a, finished with murmur's mixer. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) h = Math.imul(h ^ text.charCodeAt(index), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
