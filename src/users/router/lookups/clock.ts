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
