import { bytesOf } from "../../../common/ids.ts";
import { defaultLimits, type Limits } from "../../../common/limits.ts";
import { splitKeyHashes } from "../key-hash.ts";
import type { BucketKey } from "../messages.ts";
import { noSightings, type Sightings } from "./sightings.ts";
import type { Clock, Sql } from "../ports.ts";
import { HeldNames, type HeldEntry, type Place } from "./held-names.ts";
import {
  itemsOf,
  placedItemsOf,
  textOf,
  withNames,
  type StoredEnd,
  type StoredEntry,
} from "./hold-entries.ts";
import { Slot } from "../slot.ts";
import { bucketText } from "./rows.ts";
import { noNotes, type TransactionNotes } from "./transaction-notes.ts";

/**
 * The longest text of one row, in UTF-16 code units, so that a row has less than the 2 MB that the platform
 * allows. https://developers.cloudflare.com/durable-objects/platform/limits/#sql-storage-limits
 */
export const MAX_TEXT_LENGTH = 500_000;

/**
 * One row per transaction that changed something, in a ring of `LOG_ROWS` slots. `held` has the hashes of the
 * keys that the transaction put on hold, one after the other (Q1). It is NULL if any key may have changed.
 * `changes` has what was noted of the transaction (F1). It is NULL once it was dropped to make room.
 * `dropped` is the position of the newest transaction whose changes were dropped or replaced until then.
 *
 * `holds` has the entries of the holds that the transaction made, and those that were carried into its row.
 * `ended` has the holds that it ended (hold-entries.ts). NULL: none. `open_from` is the position of the
 * oldest row that had an entry in use after the transaction. A start reads the rows from there on.
 */
export const LOG_TABLE = `CREATE TABLE log (
   slot INTEGER NOT NULL PRIMARY KEY,
   position INTEGER NOT NULL,
   at_ms INTEGER NOT NULL,
   ledgers TEXT NOT NULL,
   held TEXT,
   changes TEXT,
   dropped INTEGER NOT NULL,
   holds TEXT,
   ended TEXT,
   open_from INTEGER NOT NULL
 ) STRICT, WITHOUT ROWID`;

/**
 * The number of transactions that the log keeps. A new row replaces the oldest one, so pruning writes no rows
 * of its own. Routers read the rows of some minutes: 16,384 rows last 7 minutes at 300 claims a second over
 * 16 shards, and 32 seconds at 500 transactions a second. They take less than 2 MB, and some 200 bytes for
 * each name that was held.
 */
const LOG_ROWS = 16_384;

/**
 * The part of the ring after which a row carries the oldest entries in use. What the rows of the rest can
 * carry is more than all entries that a shard may have (M6).
 */
const CARRY_AFTER = 1 / 8;

/** The same while too many holds have ended in the log, so that those of the rows before can be dropped. */
const CARRY_AFTER_IF_FULL = 1 / 256;

/** For each slot of the ring, the length at which a row carries no more entries. It carries at least one. */
const CARRIED_PER_SLOT = 4;

/**
 * The bytes of all changes above which the oldest ones are dropped. The log reaches it if its transactions
 * change more than some ten names each, as those of a backfill do. Then each transaction writes more than one
 * row: the oldest changes make room for its own. The same holds for the bytes of holds, without those that
 * entries in use need.
 */
const MAX_TEXT_BYTES = 33_554_432;

/** The part of a shard that changes may take, and holds. It counts only if `shardBytes` is small. */
const SHARD_PART = 1 / 100;

/** The most rows whose changes or holds one transaction drops. */
const DROPPED_ROWS = 100;

/** What a row has of holds. */
interface HeldTexts {
  holds: string | null;
  ended: string | null;
}

/** What one row of a transaction has besides its points. */
interface RowText {
  changes: string;
  made: { entry: HeldEntry; text: string }[];
  ends: string[];
  length: number;
}

const newRow = (changes: string): RowText => ({ changes, made: [], ends: [], length: changes.length });

/** A transaction as routers are told of it. */
export interface LoggedHolds {
  position: number;
  /** The hashes of the keys that it put on hold. */
  keys: string[];
}

/** What was noted of a transaction. */
export interface LoggedText {
  position: number;
  atMs: number;
  text: string;
}

interface LogRow {
  slot: number;
  position: number;
  /** A JSON object: for each cell, the incarnation and the position of its ledger. */
  ledgers: string;
  is_reset: 0 | 1;
  /** The bytes of the changes. Null: they were dropped. */
  size: number | null;
  /** The bytes of the entries. */
  held_size: number;
  dropped: number;
  open_from: number;
}

/**
 * The shard's log: one row for each transaction that changes something. Each row has the shard's position
 * after the transaction, and the points of the ledgers whose messages the transaction carried out (H3).
 *
 * Positions also are the epochs of executions: an execution takes the next position as its epoch. So the log
 * makes every epoch durable together with its holds, and no instance assigns one a second time (E1).
 */
export class ShardLog {
  readonly #sql: Sql;
  readonly #clock: Pick<Clock, "now">;
  readonly #maxTextBytes: number;
  /** The number of slots. */
  readonly #size: number;
  #position = 0;
  #hasJumped = false;
  #hasLostChanges = false;
  /** The position and slot of the newest row. */
  #logged = 0;
  #slot = -1;
  /** The position of the row in each slot, the bytes of its changes, and those of its holds. */
  readonly #positions: Float64Array;
  readonly #sizes: Float64Array;
  readonly #heldSizes: Float64Array;
  #rowCount = 0;
  /** The bytes of the changes in all rows, and those of their holds. */
  #changesBytes = 0;
  #holdsBytes = 0;
  /** The newest position whose changes were dropped or replaced, or before which changes were lost. */
  #droppedPosition = 0;
  /** The position of the last transaction after which any key may have changed. */
  #resetPosition = 0;
  /** What the rows say of ledgers, until it is taken. */
  #ledgers: { slot: number; ledgers: string }[];
  /** The ledgers whose messages transactions carry out. */
  readonly sightings = new Slot<Sightings>(noSightings);
  /** The hashes of the keys that the current transaction puts on hold. */
  #held: string[] = [];
  /** What the current transaction changes. */
  readonly notes = new Slot<TransactionNotes>(noNotes);
  /** The names that the shard holds. */
  readonly held: HeldNames;

  constructor(
    sql: Sql,
    clock: Pick<Clock, "now">,
    { shardBytes }: Pick<Limits, "shardBytes"> = defaultLimits,
    size = LOG_ROWS,
  ) {
    this.#sql = sql;
    this.#clock = clock;
    this.#size = size;
    this.#positions = new Float64Array(size);
    this.#sizes = new Float64Array(size);
    this.#heldSizes = new Float64Array(size);
    this.#maxTextBytes = Math.min(MAX_TEXT_BYTES, shardBytes * SHARD_PART);
    const rows = sql.all<LogRow>(
      `SELECT slot, position, ledgers, held IS NULL AS is_reset, octet_length(changes) AS size,
              coalesce(octet_length(holds), 0) + coalesce(octet_length(ended), 0) AS held_size,
              dropped, open_from
         FROM log ORDER BY position`,
    );
    this.#ledgers = rows.map(({ slot, ledgers }) => ({ slot, ledgers }));
    for (const { slot, position, is_reset: isReset, size: bytes, held_size, dropped } of rows) {
      this.#appended(slot, position, isReset === 1);
      this.#setSizes(slot, bytes ?? 0, held_size);
      this.#droppedPosition = bytes === null ? position : Math.max(this.#droppedPosition, dropped);
    }
    this.#position = this.#logged;
    this.held = new HeldNames(this.#holdsFrom(rows.at(-1)?.open_from ?? 0), (place) => this.#entryAt(place));
  }

  /** Reads what the rows have of holds, one row at a time, from the newest back to a position. */
  *#holdsFrom(first: number): ConstructorParameters<typeof HeldNames>[0] {
    for (let index = this.#rowCount - 1; index >= 0; index -= 1) {
      const slot = this.#slotAt(index);
      const position = this.#positions[slot] ?? 0;
      if (position < first) return;
      const [row] = this.#sql.all<{ holds: string | null; ended: string | null }>(
        "SELECT holds, ended FROM log WHERE slot = ?",
        slot,
      );
      yield {
        slot,
        position,
        holds: row?.holds ?? null,
        ends: itemsOf<StoredEnd>(row?.ended ?? null),
      };
    }
  }

  #entryAt({ slot, position, offset, length }: Place): StoredEntry | undefined {
    const [row] = this.#sql.all<{ text: string | null }>(
      "SELECT substr(holds, ?, ?) AS text FROM log WHERE slot = ? AND position = ?",
      // SQLite counts from 1.
      offset + 1,
      length,
      slot,
      position,
    );
    return row?.text == null ? undefined : (JSON.parse(row.text) as StoredEntry);
  }

  /** The largest position that was assigned. */
  get position(): number {
    return this.#position;
  }

  /** Returns the next position, as the epoch of an execution. The same transaction must call `append`. */
  nextEpoch(): number {
    this.#position += 1;
    return this.#position;
  }

  /** Makes sure that all later positions are above this one. Any key may have changed (Q1). */
  jumpTo(position: number): void {
    if (position > this.#position) this.#position = position;
    this.reset();
  }

  /** From here on, any key may have changed (Q1). The transaction writes a log row in any case. */
  reset(): void {
    this.#hasJumped = true;
  }

  /** Changes were lost before this transaction (F4). To be called when a loss is accepted. */
  loseChanges(): void {
    this.#hasLostChanges = true;
  }

  get hasJumped(): boolean {
    return this.#hasJumped;
  }

  /** Returns what the rows say of ledgers, the oldest first. To be called once. */
  takeLedgers(): { slot: number; ledgers: string }[] {
    const taken = this.#ledgers;
    this.#ledgers = [];
    return taken;
  }

  /** Notes the hash of a key that this transaction puts on hold (Q1). */
  noteHeld(keyHash: string): void {
    this.#held.push(keyHash);
  }

  /**
   * Returns up to `limit` transactions after a position, oldest first. Undefined if the log does not have all
   * of them any more, or if any key may have changed after the position (Q3).
   */
  holdsAfter(position: number, limit: number): LoggedHolds[] | undefined {
    const oldest = this.#rowCount === this.#size ? this.#positionAt(0) : 0;
    return this.#rowsAfter(position, Math.max(this.#resetPosition, oldest), limit, (slot, end) =>
      this.#sql
        .all<{ position: number; held: string }>(
          "SELECT position, held FROM log WHERE slot >= ? AND slot < ? ORDER BY slot",
          slot,
          end,
        )
        .map((row) => ({ position: row.position, keys: splitKeyHashes(row.held) })),
    );
  }

  /**
   * Returns up to `limit` transactions after a position, oldest first. Undefined if the log does not have the
   * changes of all of them any more, or if a loss was accepted after the position (F4).
   */
  textsAfter(position: number, limit: number): LoggedText[] | undefined {
    return this.#rowsAfter(position, this.#droppedPosition, limit, (slot, end) =>
      this.#sql
        .all<{ position: number; at_ms: number; changes: string }>(
          "SELECT position, at_ms, changes FROM log WHERE slot >= ? AND slot < ? ORDER BY slot",
          slot,
          end,
        )
        .map((row) => ({ position: row.position, atMs: row.at_ms, text: row.changes })),
    );
  }

  /** Reads rows after a position. Undefined if it is before `first`. */
  #rowsAfter<Row>(
    position: number,
    first: number,
    limit: number,
    read: (slot: number, end: number) => Row[],
  ): Row[] | undefined {
    if (position < first) return undefined;
    let from = 0;
    for (let end = this.#rowCount; from < end;) {
      const middle = Math.floor((from + end) / 2);
      if (this.#positionAt(middle) > position) end = middle;
      else from = middle + 1;
    }
    const count = Math.min(limit, this.#rowCount - from);
    if (count === 0) return [];
    const slot = this.#slotAt(from);
    const beforeWrap = Math.min(count, this.#size - slot);
    return [...read(slot, slot + beforeWrap), ...read(0, count - beforeWrap)];
  }

  #positionAt(index: number): number {
    return this.#positions[this.#slotAt(index)] ?? 0;
  }

  /** Returns the slot of a row. Rows are counted from the oldest one. */
  #slotAt(index: number): number {
    return this.#rowCount === this.#size ? (this.#slot + 1 + index) % this.#size : index;
  }

  /**
   * Must be called at the end of each transaction that changes something. It writes one row, or more if what
   * the transaction has changed is too long for one.
   */
  append(): void {
    this.#checkNewest();
    for (const row of this.#rowTexts()) this.#appendRow(row);
    this.#dropTexts();
  }

  /** Returns what each row of the transaction has: first the changes, and then holds where there is room. */
  #rowTexts(): RowText[] {
    const { made, ends } = this.held.take();
    const rows = this.notes.current.take().map(newRow);
    const rowFor = (text: string): RowText => {
      const last = rows.at(-1);
      const row = last !== undefined && last.length + text.length <= MAX_TEXT_LENGTH ? last : newRow("");
      if (row !== last) rows.push(row);
      row.length += text.length + 1;
      return row;
    };
    for (const entry of made)
      for (const text of this.held.stored(entry).map((stored) => JSON.stringify(stored)))
        rowFor(text).made.push({ entry, text });
    for (const end of ends) {
      const text = JSON.stringify(end);
      rowFor(text).ends.push(text);
    }
    return rows.length === 0 ? [newRow("")] : rows;
  }

  #appendRow({ changes: text, made, ends }: RowText): void {
    const changes = this.#hasLostChanges ? null : text;
    const slot = (this.#slot + 1) % this.#size;
    this.#position = Math.max(this.#position, this.#logged + 1);
    // A row without a text lacks nothing. Such rows are written for names that move (G9).
    if ((this.#sizes[slot] ?? 0) > 0) this.#noteDropped(slot);
    const ledgers = this.sightings.current.take(slot);
    const entries = [...this.#carriedTo(slot), ...made];
    const holds = textOf(entries.map((each) => each.text));
    for (const [index, { offset, length }] of placedItemsOf(holds).entries()) {
      const entry = entries[index]?.entry;
      if (entry !== undefined) this.held.place(entry, { slot, position: this.#position, offset, length });
    }
    const [oldest] = this.held.inLogOrder;
    const ended = textOf(ends);
    this.#sql.all(
      `INSERT INTO log (slot, position, at_ms, ledgers, held, changes, dropped, holds, ended, open_from)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET position = excluded.position, at_ms = excluded.at_ms,
                                        ledgers = excluded.ledgers, held = excluded.held,
                                        changes = excluded.changes, dropped = excluded.dropped,
                                        holds = excluded.holds, ended = excluded.ended,
                                        open_from = excluded.open_from`,
      slot,
      this.#position,
      this.#clock.now(),
      JSON.stringify(ledgers),
      this.#hasJumped ? null : this.#held.join(""),
      changes,
      this.#droppedPosition,
      holds,
      ended,
      oldest?.position ?? this.#position,
    );
    this.#appended(slot, this.#position, this.#hasJumped);
    this.#setSizes(slot, bytesOf(changes ?? ""), bytesOf(holds ?? "") + bytesOf(ended ?? ""));
    if (changes === null) this.#droppedPosition = this.#position;
    this.#held = [];
    this.#hasJumped = false;
    this.#hasLostChanges = false;
  }

  /** Returns the oldest entries in use, for a new row, if their rows are far back. */
  #carriedTo(slot: number): RowText["made"] {
    const part = this.#hasTooManyHolds ? CARRY_AFTER_IF_FULL : CARRY_AFTER;
    const most = Math.max(1, Math.floor(this.#size * part));
    const carried: RowText["made"] = [];
    let length = 0;
    for (const entry of this.held.inLogOrder) {
      const back = (slot - entry.slot + this.#size) % this.#size || this.#size;
      // What is in the row that is replaced must not be lost.
      if (back <= most || (length >= CARRIED_PER_SLOT * this.#size && back < this.#size)) break;
      for (const text of this.held.stored(entry).map((stored) => JSON.stringify(stored))) {
        carried.push({ entry, text });
        length += text.length;
      }
    }
    return carried;
  }

  /**
   * Drops the changes of the oldest rows while there are too many, except those of the newest row, and what
   * the oldest rows have of holds, except entries in use.
   */
  #dropTexts(): void {
    const [oldest] = this.held.inLogOrder;
    const openFrom = oldest?.position ?? this.#logged;
    let left = DROPPED_ROWS;
    for (let index = 0; left > 0 && index < this.#rowCount - 1; index += 1) {
      const slot = this.#slotAt(index);
      const changes = this.#sizes[slot] ?? 0;
      const holds = this.#heldSizes[slot] ?? 0;
      const dropsHolds = this.#hasTooManyHolds && (this.#positions[slot] ?? 0) < openFrom;
      if (!this.#hasTooManyChanges && !dropsHolds) return;
      const dropsChanges = this.#hasTooManyChanges && changes > 0;
      if (!dropsChanges && !(dropsHolds && holds > 0)) continue;
      left -= 1;
      this.#sql.all(
        `UPDATE log SET changes = iif(?1, NULL, changes), holds = iif(?2, NULL, holds),
                        ended = iif(?2, NULL, ended) WHERE slot = ?3`,
        Number(dropsChanges),
        Number(dropsHolds),
        slot,
      );
      if (dropsChanges) this.#noteDropped(slot);
      this.#setSizes(slot, dropsChanges ? 0 : changes, dropsHolds ? 0 : holds);
    }
  }

  #noteDropped(slot: number): void {
    this.#droppedPosition = Math.max(this.#droppedPosition, this.#positions[slot] ?? 0);
  }

  get #hasTooManyChanges(): boolean {
    return this.#changesBytes > this.#maxTextBytes;
  }

  /** Entries in use don't count, because they stay in any case. A character may take three bytes. */
  get #hasTooManyHolds(): boolean {
    return this.#holdsBytes > this.#maxTextBytes + 3 * this.held.writtenLength;
  }

  #setSizes(slot: number, changes: number, holds: number): void {
    this.#changesBytes += changes - (this.#sizes[slot] ?? 0);
    this.#holdsBytes += holds - (this.#heldSizes[slot] ?? 0);
    this.#sizes[slot] = changes;
    this.#heldSizes[slot] = holds;
  }

  /**
   * Erases a name from holds that have ended, and from the changes, except for its claim with this epoch,
   * which is the current one (K5). A dry run only counts. Returns the number of changes that lose details.
   */
  eraseName(key: BucketKey, currentEpoch: number | undefined, { dryRun = false } = {}): number {
    const slots = this.#sql.all<{ slot: number }>(
      "SELECT slot FROM log WHERE instr(changes, ?1) > 0 OR instr(holds, ?2) > 0 OR instr(ended, ?2) > 0",
      JSON.stringify(key.canonical),
      JSON.stringify(bucketText(key.type, key.canonical)),
    );
    let count = 0;
    // One row at a time is in memory: the text may be in all of them, because ids can be like names.
    for (const { slot } of slots) {
      const [row] = this.#sql.all<HeldTexts & { changes: string | null }>(
        "SELECT changes, holds, ended FROM log WHERE slot = ?",
        slot,
      );
      if (row === undefined) continue;
      const changes = row.changes === null || row.changes === "" ? undefined : row.changes;
      const { text, erased } = this.notes.current.withoutName(changes ?? "[]", key, currentEpoch);
      count += erased;
      const { holds, ended, isSame } = this.#withoutEnded(row, bucketText(key.type, key.canonical));
      if (dryRun || (erased === 0 && isSame)) continue;
      const changed = erased > 0 ? text : row.changes;
      this.#sql.all(
        "UPDATE log SET changes = ?, holds = ?, ended = ? WHERE slot = ?",
        changed,
        holds,
        ended,
        slot,
      );
      this.#setSizes(slot, bytesOf(changed ?? ""), bytesOf(holds ?? "") + bytesOf(ended ?? ""));
      this.held.placeAgain(slot, this.#positions[slot] ?? 0, holds);
    }
    return count;
  }

  /** Returns what a row has of holds, without the ended holds of a name. A start needs nothing of them. */
  #withoutEnded(row: HeldTexts, name: string): HeldTexts & { isSame: boolean } {
    const hasEnded = ([since, part]: StoredEntry | StoredEnd): boolean =>
      !this.held.isIn({ since, part }, name);
    const entries = itemsOf<StoredEntry>(row.holds).flatMap((entry) =>
      hasEnded(entry) ? withNames(entry, (each) => each !== name) : [entry],
    );
    const ends = itemsOf<StoredEnd>(row.ended).flatMap((end): StoredEnd[] => {
      const [since, part, names] = end;
      if (names === undefined || !hasEnded(end)) return [end];
      const left = names.filter((each) => each !== name);
      return left.length === 0 ? [] : [[since, part, left]];
    });
    const [holds = null, ended = null] = [entries, ends].map((items) =>
      textOf(items.map((item) => JSON.stringify(item))),
    );
    return { holds, ended, isSame: holds === row.holds && ended === row.ended };
  }

  /** Must be called at the end of each transaction that changes nothing. */
  discard(): void {
    this.sightings.current.discard();
    this.#held = [];
  }

  /**
   * Checks that the newest row on disk is the one that this instance has written last. If not, the file was
   * replaced under the running instance, and the instance must end.
   */
  #checkNewest(): void {
    if (this.#slot < 0) return;
    const [newest] = this.#sql.all<Pick<LogRow, "position">>(
      "SELECT position FROM log WHERE slot = ?",
      this.#slot,
    );
    if (newest?.position === this.#logged) return;
    throw new Error(
      `the log on disk does not end with the row that this instance wrote last: slot ${this.#slot} has ` +
        `position ${newest?.position ?? "none"} instead of ${this.#logged}`,
    );
  }

  #appended(slot: number, position: number, isReset: boolean): void {
    this.#slot = slot;
    this.#logged = position;
    this.#positions[slot] = position;
    this.#rowCount = Math.min(this.#rowCount + 1, this.#size);
    if (isReset) this.#resetPosition = position;
  }
}
