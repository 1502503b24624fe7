import { BoundedMap } from "./bounded-map.ts";
import type { Entry } from "./entry.ts";

/** The numbers of a floor. */
const FLOOR_BYTES = 16;

/**
 * What the router has shown of every key: an answer below that is never shown again (Q6). Forgetting a floor
 * raises the floor of the whole shard, so the rule also holds when memory is short.
 *
 * Positions are by key, so that they hold for all spellings of a name. Epochs are by name: two keys of one
 * hash have epochs that cannot be compared, and one must not make the other unavailable.
 */
export class Floors {
  readonly #positions: BoundedMap<number>;
  readonly #epochs: BoundedMap<number>;
  readonly #forgotten = new Map<number, number>();

  constructor(maxBytes: number) {
    this.#positions = new BoundedMap(maxBytes / 2, (key, position) => {
      const shard = Number.parseInt(key, 10);
      this.#forgotten.set(shard, Math.max(position, this.#forgotten.get(shard) ?? 0));
    });
    this.#epochs = new BoundedMap(maxBytes / 2);
  }

  get bytes(): number {
    return this.#positions.bytes + this.#epochs.bytes;
  }

  /** The smallest position that an answer about the key may have. */
  position({ shard, key }: Pick<Entry, "shard" | "key">): number {
    return this.#positions.get(floorKey(shard, key)) ?? this.#forgotten.get(shard) ?? 0;
  }

  /** Whether the key's own floor is above the answer. The floor of a whole shard says nothing about a key. */
  isBackwards(name: string, entry: Entry): boolean {
    const shown = this.#positions.get(floorKey(entry.shard, entry.key));
    return (shown !== undefined && entry.position < shown) || this.#isOlderEpoch(name, entry);
  }

  isBelow(name: string, entry: Entry): boolean {
    return entry.position < this.position(entry) || this.#isOlderEpoch(name, entry);
  }

  /** Remembers that an answer is shown. */
  raise(name: string, entry: Entry): void {
    const key = floorKey(entry.shard, entry.key);
    if (entry.position > (this.#positions.get(key) ?? -1))
      this.#positions.set(key, entry.position, FLOOR_BYTES);
    if (entry.kind === "found" && entry.epoch > (this.#epochs.get(name) ?? -1))
      this.#epochs.set(name, entry.epoch, FLOOR_BYTES);
  }

  #isOlderEpoch(name: string, entry: Entry): boolean {
    return entry.kind === "found" && entry.epoch < (this.#epochs.get(name) ?? 0);
  }
}

const floorKey = (shard: number, key: string): string => `${shard}/${key}`;
