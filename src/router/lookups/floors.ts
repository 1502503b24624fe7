import { BoundedMap } from "./bounded-map.ts";
import type { Entry } from "./entry.ts";
import { FloorTable } from "./floor-table.ts";

/** The number of an epoch. */
const EPOCH_BYTES = 16;

/**
 * What the router has shown of every key: an answer below that is never shown again (Q6). Forgetting a floor
 * raises the floor of the whole shard, so the rule also holds when memory is short.
 *
 * Positions are by key, so that they hold for all spellings of a name. Epochs are by name: two keys of one
 * hash have epochs that cannot be compared, and one must not make the other unavailable.
 */
export class Floors {
  readonly #positions: FloorTable;
  readonly #epochs: BoundedMap<number>;
  readonly #forgotten = new Map<number, number>();

  constructor(maxBytes: number, drawSalt: () => number) {
    this.#positions = new FloorTable(maxBytes / 2, drawSalt, (shard, position) => {
      this.#forgotten.set(shard, Math.max(position, this.#forgotten.get(shard) ?? 0));
    });
    this.#epochs = new BoundedMap(maxBytes / 2);
  }

  get bytes(): number {
    return this.#positions.bytes + this.#epochs.bytes;
  }

  /** The smallest position that an answer about the key may have. */
  position({ shard, key }: Pick<Entry, "shard" | "key">): number {
    return this.#positions.get(shard, key) ?? this.#forgotten.get(shard) ?? 0;
  }

  /** Whether the key's own floor is above the answer. The floor of a whole shard says nothing about a key. */
  isBackwards(name: string, entry: Entry): boolean {
    const shown = this.#positions.get(entry.shard, entry.key);
    return (shown !== undefined && entry.position < shown) || this.#isOlderEpoch(name, entry);
  }

  isBelow(name: string, entry: Entry): boolean {
    return entry.position < this.position(entry) || this.#isOlderEpoch(name, entry);
  }

  /** Remembers that an answer is shown. */
  raise(name: string, entry: Entry): void {
    this.#positions.raise(entry.shard, entry.key, entry.position);
    if (entry.kind === "found" && entry.epoch > (this.#epochs.get(name) ?? -1))
      this.#epochs.set(name, entry.epoch, EPOCH_BYTES);
  }

  #isOlderEpoch(name: string, entry: Entry): boolean {
    return entry.kind === "found" && entry.epoch < (this.#epochs.get(name) ?? 0);
  }
}
