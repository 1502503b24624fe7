import type { CellAddress } from "./routes.ts";

interface EntryOrigin {
  /** The hash of the key, the same for all spellings of a name. */
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  /**
   * The answer was true at a moment not before this one, on this router's clock: when the question was sent,
   * minus the age in the answer (Q4).
   */
  sinceMs: number;
}

export interface FoundEntry extends EntryOrigin {
  kind: "found";
  cell: CellAddress;
  epoch: number;
}

export interface NoneEntry extends EntryOrigin {
  kind: "none";
}

/** An answer about one name, with what decides whether it may be used. */
export type Entry = FoundEntry | NoneEntry;

/** An entry's own objects and numbers. */
const ENTRY_BYTES = 160;

/** The size of an entry in memory, an estimate. */
export const bytesOf = (entry: Entry): number =>
  ENTRY_BYTES + 2 * entry.key.length + (entry.kind === "found" ? addressBytes(entry.cell) : 0);

const addressBytes = ({ id, address }: CellAddress): number => 2 * (id.length + address.length);

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
