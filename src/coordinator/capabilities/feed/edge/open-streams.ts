/** The most streams that an isolate has open at a time. Each of them asks every shard about once a second. */
const MAX_STREAMS = 100;

/** The part of them that one key may have. */
const MAX_STREAMS_PER_KEY = 10;

/**
 * How long a stream counts after its last page. The runtime may end a stream without a word when its client
 * has gone, so no stream is waited for.
 */
const IDLE_MS = 30_000;

/** A stream that is open. */
export interface OpenStream {
  /** Must be called before each page. False: the stream was idle and counts no longer, so it must end. */
  touch: () => boolean;
  leave: () => void;
}

interface Used {
  keyId: string;
  atMs: number;
}

/** Counts the streams that an isolate has open. */
export class OpenStreams {
  readonly #now: () => number;
  readonly #streams = new Set<Used>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Undefined if there is no room for one more. */
  enter(keyId: string): OpenStream | undefined {
    const now = this.#now();
    // After the clock was set back, a stream seems to be used in the future, and doesn't count.
    for (const stream of this.#streams)
      if (Math.abs(now - stream.atMs) > IDLE_MS) this.#streams.delete(stream);
    const ofKey = [...this.#streams].filter((stream) => stream.keyId === keyId).length;
    if (this.#streams.size >= MAX_STREAMS || ofKey >= MAX_STREAMS_PER_KEY) return undefined;
    const stream: Used = { keyId, atMs: now };
    this.#streams.add(stream);
    return {
      touch: () => {
        stream.atMs = this.#now();
        return this.#streams.has(stream);
      },
      leave: () => void this.#streams.delete(stream),
    };
  }
}
