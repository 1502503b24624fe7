/**
 * Runs `work` on every item, at most `width` at a time, starting in order. When one throws, no more are
 * started. The first error is thrown once the others have ended, so that nothing keeps running after the
 * caller continues.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  const errors: unknown[] = [];
  const worker = async (): Promise<void> => {
    // Not a `for … of`, which would close the shared iterator when one worker ends.
    for (let next = queue.next(); next.done !== true && errors.length === 0; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, width) }, worker));
  if (errors.length > 0) throw errors[0];
}
