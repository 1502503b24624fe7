/** Runs `work` on chunks of at most `size` items, one after the other, and concatenates the results. */
export async function inChunks<T, R>(
  items: readonly T[],
  size: number,
  work: (chunk: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += size) results.push(...(await work(items.slice(at, at + size))));
  return results;
}
