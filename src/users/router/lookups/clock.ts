import type { FindOptions } from "./routes.ts";

/** Time for the lookups. Only differences count, so it can start anywhere, but it must not be set back. */
export interface RouterClock {
  /** Milliseconds. */
  now(): number;
  /** Calls `ring` once after the delay, unless the returned function was called before. */
  after(delayMs: number, ring: () => void): () => void;
}

export const platformClock: RouterClock = {
  now: () => performance.now(),
  after: (delayMs, ring) => {
    const timer = setTimeout(ring, delayMs);
    return () => clearTimeout(timer);
  },
};

/**
 * Waits for work that other calls may wait for too. Resolves with `lost` after `timeoutMs`: in a Worker, work
 * never ends if the request that started it was cancelled. Throws the reason of the caller's signal.
 */
export function waitFor<Result, Lost>(
  work: Promise<Result>,
  { signal }: Pick<FindOptions, "signal">,
  clock: RouterClock,
  timeoutMs: number,
  lost: Lost,
): Promise<Result | Lost> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      release();
      reject(signal?.reason as Error);
    };
    const cancel = clock.after(Math.max(0, timeoutMs), () => {
      release();
      resolve(lost);
    });
    const release = (): void => {
      cancel();
      signal?.removeEventListener("abort", abort);
    };
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort);
    work.then(resolve, reject).finally(release);
  });
}

/** Lets work go on without anybody who waits for it. */
export function inBackground(work: Promise<unknown>, { waitUntil }: Pick<FindOptions, "waitUntil">): void {
  const quiet = work.catch(() => {});
  try {
    waitUntil?.(quiet);
  } catch {
    // The request is over. The work then goes on as long as the platform lets it.
  }
}
