import type { HoldPosition, OpKind } from "../messages.ts";
import {
  ENTRY_NAMES,
  entryOf,
  holdRow,
  holdRows,
  idIn,
  idOf,
  kindsOf,
  placedItemsOf,
  scopesOf,
  withNames,
  type EntryId,
  type StoredEnd,
  type StoredEntry,
} from "./hold-entries.ts";
import { epochText, executionKey, type Holding, type HoldRow } from "./rows.ts";

/** How many holds the cached entries may have in all. */
const CACHED_HOLDS = 10_000;

/** An entry of the log of which a name is still held. */
export interface HeldEntry extends EntryId, Pick<HoldRow, "cell" | "held_at_ms"> {
  /** By `bucketText`: one, or several, of which some may be held no more. Most entries have one. */
  readonly names: string | readonly string[];
  /** Of all names, or of each. */
  readonly kinds: OpKind | readonly OpKind[];
  /** The scopes that its creates and replaces give to claims. */
  readonly scopes: readonly string[];
  /** The `epochText` of its execution, if another shard has granted it. */
  readonly movedAs: string | null;
  /** How many names are held. */
  left: number;
  /** The row of the log that has it. -1: it is not written yet. */
  slot: number;
  position: number;
  /** Where its text begins there, and how long it is, in characters as SQLite counts them. */
  offset: number;
  length: number;
  /** What the row has, also of names that are held no more, if it is in memory. */
  stored: StoredEntry | undefined;
}

/** The next entries of a scan. */
export interface EntryPage {
  entries: HeldEntry[];
  /** The number of names in them that are held. */
  count: number;
  /** Where the scan continues. Null: no entry follows. */
  next: HoldPosition | null;
}

/** Where the text of an entry is. */
export type Place = Pick<HeldEntry, "slot" | "position" | "offset" | "length">;

/** What a row of the log has of holds. `holds` is the text of the entries. */
interface HoldsOfRow {
  slot: number;
  position: number;
  holds: string | null;
  ends: StoredEnd[];
}

/** The position before the first hold of a shard. */
export const FIRST_HOLD: HoldPosition = [0, 0];

/**
 * The names that a shard holds. Everything about them is in the log. In memory are the entry that holds each
 * name, the place of that entry in the log, and a cache of entries that were made or read. A transaction that
 * fails ends the instance, so no later one sees what the log lacks.
 *
 * Entries have an order, which never changes: `since`, then `part`. New ones come last, so a scan that has
 * passed a position misses no older hold.
 */
export class HeldNames {
  readonly #read: (place: Place) => StoredEntry | undefined;
  readonly #byName = new Map<string, HeldEntry>();
  /** In the order of scans. Entries of which nothing is left are dropped when they are the larger part. */
  #ordered: HeldEntry[] = [];
  #ended = 0;
  #size = 0;
  /** In the order of their rows in the log. */
  readonly #written = new Set<HeldEntry>();
  /** The written entries with `stored`, the oldest first. */
  readonly #cached = new Set<HeldEntry>();
  #cachedHolds = 0;
  #writtenLength = 0;
  /** The entries of executions that another shard has granted, by `epochText`. */
  readonly #moved: EntrySets = new Map();
  readonly #countByCell = new Map<string, number>();
  /** By cell and scope. */
  readonly #byScope: EntrySets = new Map();
  /** What the current transaction has changed. */
  #made: HeldEntry[] = [];
  readonly #endedNames = new Map<HeldEntry, string[]>();

  /**
   * @param rows the rows of the log, the newest first, as far back as the first one with an entry in use
   * @param read returns an entry of the log
   */
  constructor(rows: Iterable<HoldsOfRow>, read: (place: Place) => StoredEntry | undefined) {
    this.#read = read;
    for (const { entry, names } of entriesIn(rows).toReversed()) {
      entry.left = names.length;
      for (const name of names) {
        this.#byName.set(name, entry);
        this.#count(entry.cell, roomOf(name));
      }
      this.#written.add(entry);
      this.#writtenLength += entry.length;
      this.#ordered.push(entry);
      this.#index(entry);
    }
    this.#ordered.sort((a, b) => a.since - b.since || a.part - b.part);
  }

  /** The number of names that are held. A long one counts several times, as it takes that much memory. */
  get size(): number {
    return this.#size;
  }

  /** Returns the number of names that a cell holds, counted like `size`. */
  countOf(cell: string): number {
    return this.#countByCell.get(cell) ?? 0;
  }

  /** The number of names that the cell with the most of them holds. */
  get mostOfOneCell(): number {
    return Math.max(0, ...this.#countByCell.values());
  }

  /** Whether it is this entry that holds a name. */
  isIn({ since, part }: EntryId, name: string): boolean {
    const entry = this.#byName.get(name);
    return entry?.since === since && entry.part === part;
  }

  /** Returns what a prepare needs to know of a hold. */
  holding(name: string): Holding | undefined {
    const entry = this.#byName.get(name);
    if (entry === undefined) return undefined;
    const { cell, kinds } = entry;
    const kind = typeof kinds === "string" ? kinds : kinds[namesOf(entry).indexOf(name)];
    return { cell, kind: kind ?? "destroy" };
  }

  on(name: string): HoldRow | undefined {
    const entry = this.#byName.get(name);
    if (entry === undefined) return undefined;
    const stored = this.#storedOf(entry);
    const index = stored[9].indexOf(name);
    if (index === -1) throw new Error(`the log has lost a name of entry ${idOf(entry)}`);
    return holdRow(stored, index);
  }

  /** Returns the holds of an entry that have not ended. */
  holdsOf(entry: HeldEntry): HoldRow[] {
    return this.stored(entry).flatMap(holdRows);
  }

  /**
   * Compares an entry in use with the log. Returns its holds that have not ended, and the names that the log
   * lacks, or has with another cell, time or kind.
   */
  check(entry: HeldEntry): { holds: HoldRow[]; missing: string[] } {
    const { cell } = entry;
    const stored = this.#readAgain(entry);
    const rows = new Map(stored?.[9].map((name, index): [string, HoldRow] => [name, holdRow(stored, index)]));
    const holds: HoldRow[] = [];
    const missing: string[] = [];
    for (const name of this.namesIn(entry)) {
      const row = rows.get(name);
      const isSame = row?.cell === cell && row.held_at_ms === entry.held_at_ms;
      if (isSame && row.kind === this.holding(name)?.kind) holds.push(row);
      else missing.push(name);
    }
    return { holds, missing };
  }

  /** Returns the entries of an execution, in which some names are held. */
  ofExecution(execution: Pick<HoldRow, "epoch" | "granted_by">): HeldEntry[] {
    if (execution.granted_by !== null) return [...(this.#moved.get(epochText(execution)) ?? [])];
    const entries: HeldEntry[] = [];
    for (let index = this.#indexAfter(execution.epoch, -1); index < this.#ordered.length; index += 1) {
      const entry = this.#ordered[index];
      if (entry?.since !== execution.epoch) break;
      if (entry.left > 0 && entry.movedAs === null) entries.push(entry);
    }
    return entries;
  }

  /** Returns the names of an entry that are held. */
  namesIn(entry: HeldEntry): string[] {
    return namesOf(entry).filter((name) => this.#byName.get(name) === entry);
  }

  /** Returns the next entries, of all cells or of one, until they have this number of held names. */
  after([since, part]: HoldPosition, names: number, cell?: string): EntryPage {
    const entries: HeldEntry[] = [];
    let count = 0;
    for (let index = this.#indexAfter(since, part); index < this.#ordered.length; index += 1) {
      const entry = this.#ordered[index];
      if (entry === undefined || entry.left === 0 || (cell !== undefined && entry.cell !== cell)) continue;
      entries.push(entry);
      count += entry.left;
      if (count >= names) return { entries, count, next: [entry.since, entry.part] };
    }
    return { entries, count, next: null };
  }

  #indexAfter(since: number, part: number): number {
    let [from, to] = [0, this.#ordered.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const entry = this.#ordered[middle];
      if (entry !== undefined && (entry.since - since || entry.part - part) <= 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /** Returns the entries of a cell with a hold that will give a scope to a claim. */
  arrivingIn(cell: string, scope: string): Iterable<HeldEntry> {
    return this.#byScope.get(scopeText(cell, scope)) ?? [];
  }

  /**
   * Adds holds. Runs inside a transaction, as all methods that change something.
   *
   * @param nextPosition returns a position for holds that another shard has granted
   */
  add(rows: readonly HoldRow[], nextPosition: () => number): void {
    for (const holds of Map.groupBy(rows, executionKey).values()) {
      const [{ granted_by: grantedBy, epoch } = { granted_by: null, epoch: 0 }] = holds;
      const since = grantedBy === null ? epoch : nextPosition();
      for (let part = 0; part * ENTRY_NAMES < holds.length; part += 1) {
        const some = holds.slice(part * ENTRY_NAMES, (part + 1) * ENTRY_NAMES);
        const stored = entryOf({ since, part }, some);
        const entry = newEntry(stored, UNWRITTEN);
        entry.stored = stored;
        entry.left = some.length;
        for (const name of namesOf(entry)) {
          this.#byName.set(name, entry);
          this.#count(entry.cell, roomOf(name));
        }
        this.#made.push(entry);
        this.#ordered.push(entry);
        this.#index(entry);
      }
    }
  }

  /** Ends holds. Names that are not held are left out. */
  end(names: readonly string[]): void {
    for (const name of names) {
      const entry = this.#byName.get(name);
      if (entry === undefined) continue;
      this.#byName.delete(name);
      this.#count(entry.cell, -roomOf(name));
      entry.left -= 1;
      const ended = this.#endedNames.get(entry);
      if (ended === undefined) this.#endedNames.set(entry, [name]);
      else ended.push(name);
      if (entry.left === 0) this.#drop(entry);
    }
  }

  #drop(entry: HeldEntry): void {
    for (const scope of entry.scopes) removeFrom(this.#byScope, scopeText(entry.cell, scope), entry);
    if (entry.movedAs !== null) removeFrom(this.#moved, entry.movedAs, entry);
    this.#written.delete(entry);
    this.#writtenLength -= entry.length;
    this.#forget(entry);
    this.#ended += 1;
    if (this.#ended <= this.#ordered.length / 2) return;
    this.#ordered = this.#ordered.filter(({ left }) => left > 0);
    this.#ended = 0;
  }

  /** Whether the current transaction has changed something. */
  get hasChanged(): boolean {
    return this.#made.length > 0 || this.#endedNames.size > 0;
  }

  /** Ends the transaction. Returns what its rows of the log must have. Each new entry must be placed. */
  take(): { made: HeldEntry[]; ends: StoredEnd[] } {
    // What was made and has ended in the same transaction is in no row.
    const made = this.#made.filter(({ left }) => left > 0);
    const ends = [...this.#endedNames].flatMap(([{ since, part, left, slot }, names]): StoredEnd[] =>
      slot < 0 ? [] : [left === 0 ? [since, part] : [since, part, names]],
    );
    this.#made = [];
    this.#endedNames.clear();
    return { made, ends };
  }

  /** Returns what is left of an entry, for a row of the log: nothing if no name is. */
  stored(entry: HeldEntry): StoredEntry[] {
    return withNames(this.#storedOf(entry), (name) => this.#byName.get(name) === entry);
  }

  /** Notes where an entry is from now on: in the newest row. */
  place(entry: HeldEntry, place: Place): void {
    this.#written.delete(entry);
    this.#written.add(entry);
    this.#movePlace(entry, place);
    if (entry.stored !== undefined) this.#keep(entry, entry.stored);
  }

  /** Notes that a row of the log was written again, with this text of entries. */
  placeAgain(slot: number, position: number, holds: string | null): void {
    for (const { item, offset, length } of placedItemsOf(holds)) {
      const [since, part, , , , , , , , names] = JSON.parse(item) as StoredEntry;
      for (const entry of new Set(names.map((name) => this.#byName.get(name))))
        if (entry?.since === since && entry.part === part && entry.position === position)
          this.#movePlace(entry, { slot, position, offset, length });
    }
  }

  #movePlace(entry: HeldEntry, place: Place): void {
    this.#writtenLength += place.length - entry.length;
    Object.assign(entry, place);
  }

  /** The length of the texts of all entries in use. */
  get writtenLength(): number {
    return this.#writtenLength;
  }

  /** The entries in use in the order of their rows. */
  get inLogOrder(): Iterable<HeldEntry> {
    return this.#written;
  }

  #storedOf(entry: HeldEntry): StoredEntry {
    if (entry.stored !== undefined) return entry.stored;
    const stored = this.#readAgain(entry);
    if (stored === undefined) throw new Error(`the log has lost entry ${idOf(entry)}`);
    this.#keep(entry, stored);
    return stored;
  }

  /** Reads an entry from the log. Undefined: the log has lost it. */
  #readAgain(entry: HeldEntry): StoredEntry | undefined {
    const stored = this.#read(entry);
    return stored?.[0] === entry.since && stored[1] === entry.part ? stored : undefined;
  }

  #keep(entry: HeldEntry, stored: StoredEntry): void {
    this.#forget(entry);
    entry.stored = stored;
    this.#cached.add(entry);
    this.#cachedHolds += stored[9].length;
    for (const oldest of this.#cached) {
      if (this.#cachedHolds <= CACHED_HOLDS || oldest === entry) break;
      this.#forget(oldest);
    }
  }

  #forget(entry: HeldEntry): void {
    if (this.#cached.delete(entry)) this.#cachedHolds -= entry.stored?.[9].length ?? 0;
    entry.stored = undefined;
  }

  #index(entry: HeldEntry): void {
    for (const scope of entry.scopes) addTo(this.#byScope, scopeText(entry.cell, scope), entry);
    if (entry.movedAs !== null) addTo(this.#moved, entry.movedAs, entry);
  }

  #count(cell: string, room: number): void {
    this.#size += room;
    const count = this.countOf(cell) + room;
    if (count === 0) this.#countByCell.delete(cell);
    else this.#countByCell.set(cell, count);
  }
}

const UNWRITTEN: Place = { slot: -1, position: 0, offset: 0, length: 0 };

function newEntry(stored: StoredEntry, { slot, position, offset, length }: Place): HeldEntry {
  const [since, part, epoch, granted_by, cell, , , , heldAtMs, names] = stored;
  const kinds = kindsOf(stored);
  const [first] = kinds;
  return {
    since,
    part,
    cell,
    held_at_ms: heldAtMs,
    names: names.length === 1 ? (names[0] ?? "") : names,
    kinds: first !== undefined && kinds.every((kind) => kind === first) ? first : kinds,
    scopes: scopesOf(stored),
    movedAs: granted_by === null ? null : epochText({ epoch, granted_by }),
    left: 0,
    slot,
    position,
    offset,
    length,
    stored: undefined,
  };
}

/**
 * Returns the entries in use with their names that are held, the newest first. So of an entry that was
 * carried, only the newest copy is parsed, and of one that has ended, none.
 */
function entriesIn(rows: Iterable<HoldsOfRow>): { entry: HeldEntry; names: readonly string[] }[] {
  const found: { entry: HeldEntry; names: readonly string[] }[] = [];
  const isDone = new Set<string>();
  const endedNames = new Map<string, Set<string>>();
  for (const { slot, position, holds, ends } of rows) {
    for (const [since, part, names] of ends) {
      const id = idOf({ since, part });
      if (names === undefined) isDone.add(id);
      else endedNames.set(id, new Set([...(endedNames.get(id) ?? []), ...names]));
    }
    for (const { item, offset, length } of placedItemsOf(holds).toReversed()) {
      const id = idIn(item);
      if (isDone.has(id)) continue;
      isDone.add(id);
      const entry = newEntry(JSON.parse(item) as StoredEntry, { slot, position, offset, length });
      const ended = endedNames.get(id);
      const names = namesOf(entry);
      const held = ended === undefined ? names : names.filter((name) => !ended.has(name));
      if (held.length > 0) found.push({ entry, names: held });
    }
  }
  return found;
}

type EntrySets = Map<string, Set<HeldEntry>>;

function addTo(sets: EntrySets, key: string, entry: HeldEntry): void {
  sets.set(key, (sets.get(key) ?? new Set()).add(entry));
}

function removeFrom(sets: EntrySets, key: string, entry: HeldEntry): void {
  const entries = sets.get(key);
  entries?.delete(entry);
  if (entries?.size === 0) sets.delete(key);
}

/** For each so many characters, a name counts once more. */
const NAME_CHARACTERS = 128;

/** Returns how many short names take as much memory as a name, which has its type in front. */
const roomOf = (name: string): number => 1 + Math.floor(name.length / NAME_CHARACTERS);

const namesOf = ({ names }: HeldEntry): readonly string[] => (typeof names === "string" ? [names] : names);

const scopeText = (cell: string, scope: string): string => `${cell} ${scope}`;
