/** A call whose request is incomplete, or an answer that its client has not taken. */
export interface Incomplete {
  bytes: number;
  /** Ends the call or the connection, because another one needs its place. */
  evict: () => void;
}

/**
 * Bounds the bytes of messages, and the number of those that are incomplete. Those that began first make room
 * for others, so a client that never ends its calls, or never reads its answers, holds up nobody.
 */
export class MessageBudget {
  readonly #maxCalls: number;
  readonly #maxBytes: number;
  /** In the order in which they began. */
  readonly #incomplete = new Set<Incomplete>();
  #bytes = 0;

  constructor(maxCalls: number, maxBytes: number) {
    this.#maxCalls = maxCalls;
    this.#maxBytes = maxBytes;
  }

  add(call: Incomplete): void {
    this.#incomplete.add(call);
    if (this.#incomplete.size > this.#maxCalls) this.#evictFirst();
  }

  /** Counts bytes that have arrived. If they are too many, `call` itself may be among those that end. */
  grow(call: Incomplete, bytes: number): void {
    if (!this.#incomplete.has(call)) return;
    call.bytes += bytes;
    this.#bytes += bytes;
    this.#makeRoom();
  }

  shrink(call: Incomplete, bytes: number): void {
    if (!this.#incomplete.has(call)) return;
    call.bytes -= bytes;
    this.#bytes -= bytes;
  }

  /** Does nothing if the call isn't there any more. */
  remove(call: Incomplete): void {
    if (this.#incomplete.delete(call)) this.#bytes -= call.bytes;
  }

  /** Counts the bytes of a complete message until the returned function is called. Undefined: too many. */
  hold(bytes: number): (() => void) | undefined {
    this.#bytes += bytes;
    this.#makeRoom();
    const release = (): void => {
      this.#bytes -= bytes;
    };
    if (this.#bytes <= this.#maxBytes) return release;
    release();
    return undefined;
  }

  #makeRoom(): void {
    while (this.#bytes > this.#maxBytes && this.#incomplete.size > 0) this.#evictFirst();
  }

  #evictFirst(): void {
    const [first] = this.#incomplete;
    if (first === undefined) return;
    this.remove(first);
    first.evict();
  }
}
