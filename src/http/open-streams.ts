/** The most streams that an isolate has open at a time. Each of them asks every shard about once a second. */
const MAX_STREAMS = 100;

/**
 * How long a stream counts after its last page. The runtime may end a stream without a word when its client
 * has gone, so no stream is waited for.
 */
const IDLE_MS = 30_000;

/** A stream that is open. */
export interface OpenStream {
  /** Must be called before each page. */
  touch: () => void;
  leave: () => void;
}

/** Counts the streams that an isolate has open. */
export class OpenStreams {
  readonly #now: () => number;
  /** When each stream was last used. */
  readonly #usedAtMs = new Map<object, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Undefined if there is no room for one more. */
  enter(): OpenStream | undefined {
    const now = this.#now();
    // After the clock was set back, a stream seems to be used in the future, and doesn't count.
    for (const [stream, usedAtMs] of this.#usedAtMs)
      if (Math.abs(now - usedAtMs) > IDLE_MS) this.#usedAtMs.delete(stream);
    if (this.#usedAtMs.size >= MAX_STREAMS) return undefined;
    const stream = {};
    this.#usedAtMs.set(stream, now);
    return {
      touch: () => void this.#usedAtMs.set(stream, this.#now()),
      leave: () => void this.#usedAtMs.delete(stream),
    };
  }
}
