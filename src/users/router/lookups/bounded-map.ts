interface Slot<Value> {
  value: Value;
  bytes: number;
  wasUsed: boolean;
}

/** What a map needs for one entry beside its key and value, an estimate. */
const SLOT_BYTES = 128;

/**
 * A map that never takes more than a number of bytes. It drops what was not used since it last came to the
 * end of the line, so that names that are asked for once don't displace those that are asked for often.
 */
export class BoundedMap<Value> {
  readonly #slots = new Map<string, Slot<Value>>();
  readonly #maxBytes: number;
  readonly #onDrop: (key: string, value: Value) => void;
  #bytes = 0;

  constructor(maxBytes: number, onDrop: (key: string, value: Value) => void = () => {}) {
    this.#maxBytes = maxBytes;
    this.#onDrop = onDrop;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#slots.size;
  }

  get(key: string): Value | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    slot.wasUsed = true;
    return slot.value;
  }

  /** Reads without marking the entry as used. */
  peek(key: string): Value | undefined {
    return this.#slots.get(key)?.value;
  }

  /** @param valueBytes The size of the value, without the key. */
  set(key: string, value: Value, valueBytes: number): void {
    this.delete(key);
    // Two bytes for each character are the most that an engine needs.
    const bytes = SLOT_BYTES + 2 * key.length + valueBytes;
    this.#makeRoom(bytes);
    if (bytes > this.#maxBytes) {
      this.#onDrop(key, value);
      return;
    }
    this.#slots.set(key, { value, bytes, wasUsed: false });
    this.#bytes += bytes;
  }

  delete(key: string): void {
    const slot = this.#slots.get(key);
    if (slot === undefined) return;
    this.#slots.delete(key);
    this.#bytes -= slot.bytes;
  }

  clear(): void {
    this.#slots.clear();
    this.#bytes = 0;
  }

  #makeRoom(bytes: number): void {
    // Each entry gets at most one more round, so the loop ends.
    for (const [key, slot] of this.#slots) {
      if (this.#bytes + bytes <= this.#maxBytes) return;
      this.#slots.delete(key);
      if (slot.wasUsed) {
        slot.wasUsed = false;
        this.#slots.set(key, slot);
      } else {
        this.#bytes -= slot.bytes;
        this.#onDrop(key, slot.value);
      }
    }
  }
}
