/**
 * Large work of a shard is cut into parts of about this many rows, so that the work of other cells gets its
 * turn in between.
 */
export const CHUNK_ROWS = 250;

/** Cuts a list into parts whose weights add up to `most` at most. A heavier item is a part by itself. */
export function chunksOf<Item>(
  items: readonly Item[],
  most: number,
  weightOf: (item: Item) => number,
): Item[][] {
  const chunks: Item[][] = [];
  let room = 0;
  for (const item of items) {
    const weight = weightOf(item);
    const last = chunks.at(-1);
    if (last === undefined || weight > room) {
      chunks.push([item]);
      room = most - weight;
    } else {
      last.push(item);
      room -= weight;
    }
  }
  return chunks;
}
