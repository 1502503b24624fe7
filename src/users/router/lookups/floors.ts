import { BoundedMap } from "./bounded-map.ts";
import type { Entry } from "./entry.ts";
import { FloorTable } from "./floor-table.ts";

/** The number of an epoch. */
const EPOCH_BYTES = 16;

/**
 * What the router has shown of every key: an answer below that is never shown again (Q6). Forgetting a floor
 * raises the floor of the whole shard, so the rule also holds when memory is short. Two facts are lost with a
 * floor: that a name has moved to another shard, and its epoch, which orders two answers of one position. To
 * keep to them, the router would have to throw away all older answers.
 *
 * Positions are by key, so that they hold for all spellings of a name. Epochs are by name: two keys of one
 * hash have epochs that cannot be compared, and one must not make the other unavailable.
 */
export class Floors {
  readonly #positions: FloorTable;
  readonly #epochs: BoundedMap<number>;
  /** By shard: the largest position that was forgotten. */
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
    const isOlder = shown !== undefined && entry.position < shown;
    return isOlder || this.#isOlderEpoch(name, entry) || this.#hasMovedSince(entry);
  }

  isBelow(name: string, entry: Entry): boolean {
    const isOlder = entry.position < this.position(entry) || this.#isOlderEpoch(name, entry);
    return isOlder || this.#hasMovedSince(entry);
  }

  /** Forgets all times, because the clock was set back. */
  forgetTimes(): void {
    this.#positions.forgetTimes();
  }

  /**
   * Whether the answer was read before an answer about the key from a shard with a larger number was shown. A
   * name only moves to such a shard, and positions of two shards cannot be compared (G6). Another name with
   * the same hash may be meant. Then the router only asks again.
   */
  #hasMovedSince({ shard, key, sinceMs }: Entry): boolean {
    return sinceMs < this.#positions.movedMs(shard, key);
  }

  /** Remembers that an answer is shown. */
  raise(name: string, entry: Entry, nowMs: number): void {
    this.#positions.raise(entry.shard, entry.key, entry.position, nowMs);
    if (entry.kind === "found" && entry.epoch > (this.#epochs.get(name) ?? -1))
      this.#epochs.set(name, entry.epoch, EPOCH_BYTES);
  }

  #isOlderEpoch(name: string, entry: Entry): boolean {
    return entry.kind === "found" && entry.epoch < (this.#epochs.get(name) ?? 0);
  }
}
