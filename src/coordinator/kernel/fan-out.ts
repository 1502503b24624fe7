/** Runs `work` on every item, at most `width` at a time. The results are in the order of the items. */
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

/** Runs at most `width` tasks at a time. The other tasks wait in the order of their arrival. */
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
      // The permit passes directly to the next task in the queue, so a newcomer cannot take it first.
      const next = this.#waiting.shift();
      if (next === undefined) this.#room += 1;
      else next();
    }
  }
}
