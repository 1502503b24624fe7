import { BoundedMap, type Entry } from "./entries.ts";

/** Slots of one bucket. A floor is only ever in the bucket of its key. */
const WAYS = 8;
/** What one slot takes in the arrays below. */
const SLOT_BYTES = 36;

/** Called with a floor that the table has no room for. */
type OnForget = (shard: number, position: number) => void;

/**
 * The largest position that was shown of each key, in a memory of fixed size: a hash table whose buckets have
 * eight slots each. A full bucket forgets the floor that was used least recently.
 *
 * A router needs a floor for every name that it has shown, so floors are numbers in typed arrays. A `Map`
 * needs six times as much for each, and would have room for fewer floors than there is room for entries.
 */
export class FloorTable {
  readonly #bucketCount: number;
  readonly #onForget: OnForget;
  /** Decides which keys share a bucket, so that nobody can find names that displace each other. */
  readonly #drawSalt: () => number;
  #salt: number | undefined;
  /** The two halves of the hash of each slot's key. */
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  readonly #shards: Uint32Array;
  /** 0 in empty slots: a floor of 0 is none. */
  readonly #positions: Float64Array;
  /** When an answer of each slot was shown first, by the router's clock. */
  readonly #shownMs: Float64Array;
  /** When each slot was used last, by the count of uses. */
  readonly #usedAt: Float64Array;
  #uses = 0;

  /** @param drawSalt draws a number below 2^32, when the first floor is kept */
  constructor(maxBytes: number, drawSalt: () => number, onForget: OnForget) {
    this.#bucketCount = Math.floor(maxBytes / SLOT_BYTES / WAYS);
    this.#drawSalt = drawSalt;
    this.#onForget = onForget;
    const slots = this.#bucketCount * WAYS;
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#shards = new Uint32Array(slots);
    this.#positions = new Float64Array(slots);
    this.#shownMs = new Float64Array(slots);
    this.#usedAt = new Float64Array(slots);
  }

  get bytes(): number {
    return this.#bucketCount * WAYS * SLOT_BYTES;
  }

  /** @param key the hash of the key, 16 hexadecimal digits */
  get(shard: number, key: string): number | undefined {
    const slot = this.#slotOf(shard, key);
    if (slot === undefined) return undefined;
    this.#use(slot);
    return this.#positions[slot];
  }

  /** When an answer about the key from a shard with a larger number was shown first. -Infinity: never. */
  movedMs(shard: number, key: string): number {
    let movedMs = -Infinity;
    for (const slot of this.#slotsOf(key))
      if ((this.#shards[slot] ?? 0) > shard) movedMs = Math.max(movedMs, this.#shownMs[slot] ?? 0);
    return movedMs;
  }

  /** Forgets all times, because the clock was set back. */
  forgetTimes(): void {
    this.#shownMs.fill(-Infinity);
  }

  /** Keeps a position if it is larger than the one that is known of the key. */
  raise(shard: number, key: string, position: number, nowMs: number): void {
    if (position === 0) return;
    const slot = this.#slotOf(shard, key);
    if (slot === undefined) return this.#add(shard, key, position, nowMs);
    this.#use(slot);
    if (position > (this.#positions[slot] ?? 0)) this.#positions[slot] = position;
  }

  #add(shard: number, key: string, position: number, nowMs: number): void {
    if (this.#bucketCount === 0) return this.#onForget(shard, position);
    const first = this.#bucketOf(key) * WAYS;
    let slot = first;
    for (let other = first; other < first + WAYS; other += 1)
      if ((this.#usedAt[other] ?? 0) < (this.#usedAt[slot] ?? 0)) slot = other;
    const forgotten = this.#positions[slot] ?? 0;
    if (forgotten > 0) this.#onForget(this.#shards[slot] ?? 0, forgotten);
    const [high, low] = halvesOf(key);
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#shards[slot] = shard;
    this.#positions[slot] = position;
    this.#shownMs[slot] = nowMs;
    this.#use(slot);
  }

  #slotOf(shard: number, key: string): number | undefined {
    return this.#slotsOf(key).find((slot) => this.#shards[slot] === shard);
  }

  /** The slots of a key, one for each shard that has shown it. A name has another shard after it moved. */
  #slotsOf(key: string): number[] {
    if (this.#uses === 0) return [];
    const first = this.#bucketOf(key) * WAYS;
    const [high, low] = halvesOf(key);
    const slots: number[] = [];
    for (let slot = first; slot < first + WAYS; slot += 1)
      if (this.#high[slot] === high && this.#low[slot] === low && this.#positions[slot] !== 0)
        slots.push(slot);
    return slots;
  }

  #bucketOf(key: string): number {
    this.#salt ??= this.#drawSalt();
    const [high, low] = halvesOf(key);
    return mixed(mixed(high ^ this.#salt) ^ low) % this.#bucketCount;
  }

  #use(slot: number): void {
    this.#uses += 1;
    this.#usedAt[slot] = this.#uses;
  }
}

const halvesOf = (key: string): [high: number, low: number] => [
  Number.parseInt(key.slice(0, 8), 16),
  Number.parseInt(key.slice(8), 16),
];

/** Spreads 32 bits, so that each of them changes half of the result (the finalizer of MurmurHash3). */
function mixed(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

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
