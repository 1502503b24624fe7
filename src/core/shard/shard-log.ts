import { laterPoint, nextPoint } from "../history.ts";
import { bytesOf } from "../ids.ts";
import { defaultLimits, type Limits } from "../limits.ts";
import { splitKeyHashes } from "../key-hash.ts";
import type { BucketKey, HistoryPoint } from "../messages.ts";
import type { Clock, Sql } from "../ports.ts";
import { ChangeNotes, loggedChanges, withoutName, type LoggedChange } from "./logged-changes.ts";

/**
 * One row per transaction that changed something, in a ring of `LOG_ROWS` slots. `held` has the hashes of the
 * keys that the transaction put on hold, one after the other (Q1). It is NULL if any key may have changed.
 * `changes` has what the change feed tells (F1). It is NULL once it was dropped to make room. `dropped` is
 * the position of the newest transaction whose changes were dropped or replaced until then.
 */
export const LOG_TABLE = `CREATE TABLE log (
   slot INTEGER NOT NULL PRIMARY KEY,
   position INTEGER NOT NULL,
   at_ms INTEGER NOT NULL,
   ledgers TEXT NOT NULL,
   held TEXT,
   changes TEXT,
   dropped INTEGER NOT NULL
 ) STRICT, WITHOUT ROWID`;

/**
 * The number of transactions that the log keeps. A new row replaces the oldest one, so pruning writes no rows
 * of its own. Routers read the rows of some minutes: 16,384 rows last 7 minutes at 300 claims a second over
 * 16 shards, and 32 seconds at 500 transactions a second. They take less than 2 MB, and 16 bytes for each
 * key.
 */
const LOG_ROWS = 16_384;

/**
 * The bytes of all changes above which the oldest ones are dropped. The log reaches it if its transactions
 * change more than some ten names each, as those of a backfill do. Then each transaction writes more than one
 * row: the oldest changes make room for its own.
 */
const MAX_CHANGES_BYTES = 33_554_432;

/** The part of a shard that its changes may take. It counts only if `shardBytes` is small. */
const SHARD_PART = 1 / 100;

/** The most rows whose changes one transaction drops. */
const DROPPED_ROWS = 100;

/** A transaction as routers are told of it. */
export interface LoggedHolds {
  position: number;
  /** The hashes of the keys that it put on hold. */
  keys: string[];
}

/** A transaction as the change feed tells it. */
export interface LoggedTransaction {
  position: number;
  changes: Iterable<LoggedChange>;
}

interface LogRow {
  slot: number;
  position: number;
  /** A JSON object: for each cell, the incarnation and the position of its ledger. */
  ledgers: string;
  is_reset: 0 | 1;
  /** The bytes of the changes. Null: they were dropped. */
  size: number | null;
  dropped: number;
}

type StoredPoints = Record<string, [incarnation: number, position: number]>;

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
  readonly #maxChangesBytes: number;
  #position = 0;
  #hasJumped = false;
  #hasLostChanges = false;
  /** The position and slot of the newest row. */
  #logged = 0;
  #slot = -1;
  /** The position of the row in each slot, and the bytes of its changes. */
  readonly #positions = new Float64Array(LOG_ROWS);
  readonly #sizes = new Float64Array(LOG_ROWS);
  #rowCount = 0;
  /** The bytes of the changes in all rows. */
  #changesBytes = 0;
  /** The newest position whose changes were dropped or replaced, or before which changes were lost. */
  #droppedPosition = 0;
  /** The position of the last transaction after which any key may have changed. */
  #resetPosition = 0;
  /** The newest point of each ledger, and the slot of the row that has it. */
  readonly #ledgers = new Map<string, { point: HistoryPoint; slot: number }>();
  /** The cells whose points are in the row of a slot. */
  readonly #cells = new Map<number, string[]>();
  /** The points of the ledgers whose messages the current transaction carries out. */
  readonly #noted = new Map<string, HistoryPoint>();
  /** The hashes of the keys that the current transaction puts on hold. */
  #held: string[] = [];
  /** What the current transaction changes, for the change feed. */
  readonly changes = new ChangeNotes();

  constructor(
    sql: Sql,
    clock: Pick<Clock, "now">,
    { shardBytes }: Pick<Limits, "shardBytes"> = defaultLimits,
  ) {
    this.#sql = sql;
    this.#clock = clock;
    this.#maxChangesBytes = Math.min(MAX_CHANGES_BYTES, shardBytes * SHARD_PART);
    const rows = sql.all<LogRow>(
      `SELECT slot, position, ledgers, held IS NULL AS is_reset, octet_length(changes) AS size, dropped
         FROM log ORDER BY position`,
    );
    for (const { slot, position, ledgers, is_reset: isReset, size, dropped } of rows) {
      this.#appended(slot, position, JSON.parse(ledgers) as StoredPoints, isReset === 1, size ?? 0);
      this.#droppedPosition = size === null ? position : Math.max(this.#droppedPosition, dropped);
    }
    this.#position = this.#logged;
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

  /** Returns the newest point of a ledger that is stored. */
  ledgerPoint(cell: string): HistoryPoint | undefined {
    return this.#noted.get(cell) ?? this.#ledgers.get(cell)?.point;
  }

  /** The newest points of all ledgers that are stored, by their cells. */
  get ledgerPoints(): Record<string, HistoryPoint> {
    return Object.fromEntries([...this.#ledgers].map(([cell, { point }]) => [cell, point]));
  }

  /** Notes the point of a ledger that another shard has stored, if it is later (H3). */
  noteLater(cell: string, point: HistoryPoint): void {
    this.#noted.set(cell, laterPoint(this.ledgerPoint(cell), point));
  }

  /**
   * Notes the point of a ledger whose message is carried out in this transaction (H3). Returns false if the
   * message must not be carried out, because the ledger has not said that it has the stored point (H5).
   */
  note(cell: string, point: HistoryPoint | null, confirmed: HistoryPoint | null): boolean {
    const known = this.ledgerPoint(cell);
    const next = nextPoint(known, point, confirmed);
    if (next !== undefined && next !== known) this.#noted.set(cell, next);
    return next !== undefined || known === undefined;
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
    const oldest = this.#rowCount === LOG_ROWS ? this.#positionAt(0) : 0;
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
  changesAfter(position: number, limit: number): LoggedTransaction[] | undefined {
    return this.#rowsAfter(position, this.#droppedPosition, limit, (slot, end) =>
      this.#sql
        .all<{ position: number; at_ms: number; changes: string }>(
          "SELECT position, at_ms, changes FROM log WHERE slot >= ? AND slot < ? ORDER BY slot",
          slot,
          end,
        )
        .map((row) => ({
          position: row.position,
          changes: loggedChanges(row.changes, row.position, row.at_ms),
        })),
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
    const beforeWrap = Math.min(count, LOG_ROWS - slot);
    return [...read(slot, slot + beforeWrap), ...read(0, count - beforeWrap)];
  }

  #positionAt(index: number): number {
    return this.#positions[this.#slotAt(index)] ?? 0;
  }

  /** Returns the slot of a row. Rows are counted from the oldest one. */
  #slotAt(index: number): number {
    return this.#rowCount === LOG_ROWS ? (this.#slot + 1 + index) % LOG_ROWS : index;
  }

  /**
   * Must be called at the end of each transaction that changes something. It writes one row, or more if the
   * changes are too long for one.
   */
  append(): void {
    const [first = "", ...more] = this.changes.take();
    this.#checkNewest();
    this.#appendRow(first);
    for (const changes of more) this.#appendRow(changes);
    this.#dropChanges();
  }

  #appendRow(text: string): void {
    const changes = this.#hasLostChanges ? null : text;
    const slot = (this.#slot + 1) % LOG_ROWS;
    this.#position = Math.max(this.#position, this.#logged + 1);
    // A row without changes takes nothing from the feed. Such rows are written for names that move (G9).
    if ((this.#sizes[slot] ?? 0) > 0) this.#noteDropped(slot);
    const ledgers: StoredPoints = {};
    for (const [cell, { incarnation, position }] of [...this.#onlyIn(slot), ...this.#noted])
      ledgers[cell] = [incarnation, position];
    this.#sql.all(
      `INSERT INTO log (slot, position, at_ms, ledgers, held, changes, dropped) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET position = excluded.position, at_ms = excluded.at_ms,
                                        ledgers = excluded.ledgers, held = excluded.held,
                                        changes = excluded.changes, dropped = excluded.dropped`,
      slot,
      this.#position,
      this.#clock.now(),
      JSON.stringify(ledgers),
      this.#hasJumped ? null : this.#held.join(""),
      changes,
      this.#droppedPosition,
    );
    this.#appended(slot, this.#position, ledgers, this.#hasJumped, bytesOf(changes ?? ""));
    if (changes === null) this.#droppedPosition = this.#position;
    this.#noted.clear();
    this.#held = [];
    this.#hasJumped = false;
    this.#hasLostChanges = false;
  }

  /** Drops the changes of the oldest rows while there are too many. Those of the newest row stay. */
  #dropChanges(): void {
    let left = DROPPED_ROWS;
    for (let index = 0; left > 0 && this.#hasTooMuch && index < this.#rowCount - 1; index += 1) {
      const slot = this.#slotAt(index);
      if (this.#sizes[slot] === 0) continue;
      left -= 1;
      this.#sql.all("UPDATE log SET changes = NULL WHERE slot = ?", slot);
      this.#noteDropped(slot);
      this.#setSize(slot, 0);
    }
  }

  #noteDropped(slot: number): void {
    this.#droppedPosition = Math.max(this.#droppedPosition, this.#positions[slot] ?? 0);
  }

  get #hasTooMuch(): boolean {
    return this.#changesBytes > this.#maxChangesBytes;
  }

  #setSize(slot: number, bytes: number): void {
    this.#changesBytes += bytes - (this.#sizes[slot] ?? 0);
    this.#sizes[slot] = bytes;
  }

  /**
   * Erases a name from the changes, except for its claim with this epoch, which is the current one (K5). A
   * dry run only counts. Returns the number of changes that lose their details.
   */
  eraseName(key: BucketKey, currentEpoch: number | undefined, { dryRun = false } = {}): number {
    const slots = this.#sql.all<{ slot: number }>(
      "SELECT slot FROM log WHERE instr(changes, ?) > 0",
      JSON.stringify(key.canonical),
    );
    let count = 0;
    // One row at a time is in memory: the text may be in all of them, because ids can be like names.
    for (const { slot } of slots) {
      const [row] = this.#sql.all<{ changes: string }>("SELECT changes FROM log WHERE slot = ?", slot);
      const { text, erased } = withoutName(row?.changes ?? "[]", key, currentEpoch);
      count += erased;
      if (erased === 0 || dryRun) continue;
      this.#sql.all("UPDATE log SET changes = ? WHERE slot = ?", text, slot);
      this.#setSize(slot, bytesOf(text));
    }
    return count;
  }

  /** Must be called at the end of each transaction that changes nothing. */
  discard(): void {
    this.#noted.clear();
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

  /** Returns the points that only the row of this slot has. They must not be lost when it is replaced. */
  #onlyIn(slot: number): [string, HistoryPoint][] {
    return (this.#cells.get(slot) ?? []).flatMap((cell) => {
      const known = this.#ledgers.get(cell);
      return known?.slot === slot ? [[cell, known.point] satisfies [string, HistoryPoint]] : [];
    });
  }

  #appended(
    slot: number,
    position: number,
    ledgers: StoredPoints,
    isReset: boolean,
    changesBytes: number,
  ): void {
    this.#setSize(slot, changesBytes);
    this.#slot = slot;
    this.#logged = position;
    this.#positions[slot] = position;
    this.#rowCount = Math.min(this.#rowCount + 1, LOG_ROWS);
    if (isReset) this.#resetPosition = position;
    const cells = Object.entries(ledgers);
    for (const [cell, [incarnation, ofLedger]] of cells)
      this.#ledgers.set(cell, { point: { incarnation, position: ofLedger }, slot });
    this.#cells.set(
      slot,
      cells.map(([cell]) => cell),
    );
  }
}
