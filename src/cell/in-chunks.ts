/** Runs `work` on at most `size` items at a time, one chunk after the other, and puts together what it answers. */
export async function inChunks<T, R>(
  items: readonly T[],
  size: number,
  work: (chunk: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += size) results.push(...(await work(items.slice(at, at + size))));
  return results;
}
