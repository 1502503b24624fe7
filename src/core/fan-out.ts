/** Runs `work` on every item, at most `width` at a time; results in the order of the items. */
export async function fanOut<Item, T>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}

/** Lets at most `width` pass at a time; the others wait in order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #room: number;

  constructor(width: number) {
    this.#room = width;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#room > 0) this.#room -= 1;
    else await new Promise<void>((enter) => this.#waiting.push(enter));
    try {
      return await work();
    } finally {
      // The room goes straight to the next in line.
      const next = this.#waiting.shift();
      if (next === undefined) this.#room += 1;
      else next();
    }
  }
}
