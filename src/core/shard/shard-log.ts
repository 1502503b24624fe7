import { mayReplace } from "../history.ts";
import { splitKeyHashes } from "../key-hash.ts";
import type { HistoryPoint } from "../messages.ts";
import type { Clock, Sql } from "../ports.ts";

/**
 * One row per transaction that changed something, in a ring of `LOG_ROWS` slots. `held` has the hashes of the
 * keys that the transaction put on hold, one after the other (Q1). It is NULL if any key may have changed.
 */
export const LOG_TABLE = `CREATE TABLE log (
   slot INTEGER NOT NULL PRIMARY KEY,
   position INTEGER NOT NULL,
   at_ms INTEGER NOT NULL,
   ledgers TEXT NOT NULL,
   held TEXT
 ) STRICT, WITHOUT ROWID`;

/**
 * The number of transactions that the log keeps. A new row replaces the oldest one, so pruning writes no rows
 * of its own. Routers read the rows of some minutes: 16,384 rows last 7 minutes at 300 claims a second over
 * 16 shards, and 32 seconds at 500 transactions a second. They take less than 2 MB, and 16 bytes for each
 * key.
 */
const LOG_ROWS = 16_384;

/** A transaction as routers are told of it. */
export interface LoggedHolds {
  position: number;
  /** The hashes of the keys that it put on hold. */
  keys: string[];
}

interface LogRow {
  slot: number;
  position: number;
  /** A JSON object: for each cell, the incarnation and the position of its ledger. */
  ledgers: string;
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
  #position = 0;
  #hasJumped = false;
  /** The position and slot of the newest row. */
  #logged = 0;
  #slot = -1;
  /** The position of the row in each slot. */
  readonly #positions = new Float64Array(LOG_ROWS);
  #rowCount = 0;
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

  constructor(sql: Sql, clock: Pick<Clock, "now">) {
    this.#sql = sql;
    this.#clock = clock;
    const rows = sql.all<LogRow & { is_reset: 0 | 1 }>(
      "SELECT slot, position, ledgers, held IS NULL AS is_reset FROM log ORDER BY position",
    );
    for (const { slot, position, ledgers, is_reset: isReset } of rows)
      this.#appended(slot, position, JSON.parse(ledgers) as StoredPoints, isReset === 1);
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

  /**
   * Makes sure that all later positions are above this one. The transaction writes a log row, even if it
   * changes nothing else. Called when a loss is accepted, after which any key may have changed (Q1).
   */
  jumpTo(position: number): void {
    if (position > this.#position) this.#position = position;
    this.#hasJumped = true;
  }

  get hasJumped(): boolean {
    return this.#hasJumped;
  }

  /** Returns the newest point of a ledger that is stored. */
  ledgerPoint(cell: string): HistoryPoint | undefined {
    return this.#noted.get(cell) ?? this.#ledgers.get(cell)?.point;
  }

  /** Notes the point of a ledger whose message is carried out in this transaction (H5). */
  note(cell: string, point: HistoryPoint, confirmed: HistoryPoint | null): void {
    if (mayReplace(this.ledgerPoint(cell), point, confirmed)) this.#noted.set(cell, point);
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
    const isFull = this.#rowCount === LOG_ROWS;
    const first = isFull ? (this.#slot + 1) % LOG_ROWS : 0;
    const slotAt = (index: number): number => (first + index) % LOG_ROWS;
    const positionAt = (index: number): number => this.#positions[slotAt(index)] ?? 0;
    if (position < Math.max(this.#resetPosition, isFull ? positionAt(0) : 0)) return undefined;
    let from = 0;
    for (let end = this.#rowCount; from < end;) {
      const middle = Math.floor((from + end) / 2);
      if (positionAt(middle) > position) end = middle;
      else from = middle + 1;
    }
    const count = Math.min(limit, this.#rowCount - from);
    if (count === 0) return [];
    const slot = slotAt(from);
    const beforeWrap = Math.min(count, LOG_ROWS - slot);
    return [...this.#holdsIn(slot, beforeWrap), ...this.#holdsIn(0, count - beforeWrap)];
  }

  #holdsIn(slot: number, count: number): LoggedHolds[] {
    return this.#sql
      .all<{ position: number; held: string }>(
        "SELECT position, held FROM log WHERE slot >= ? AND slot < ? ORDER BY slot",
        slot,
        slot + count,
      )
      .map(({ position, held }) => ({ position, keys: splitKeyHashes(held) }));
  }

  /** Must be called at the end of each transaction that changes something. It writes one row. */
  append(): void {
    const slot = (this.#slot + 1) % LOG_ROWS;
    this.#checkNewest();
    this.#position = Math.max(this.#position, this.#logged + 1);
    const ledgers: StoredPoints = {};
    for (const [cell, { incarnation, position }] of [...this.#onlyIn(slot), ...this.#noted])
      ledgers[cell] = [incarnation, position];
    this.#sql.all(
      `INSERT INTO log (slot, position, at_ms, ledgers, held) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET position = excluded.position, at_ms = excluded.at_ms,
                                        ledgers = excluded.ledgers, held = excluded.held`,
      slot,
      this.#position,
      this.#clock.now(),
      JSON.stringify(ledgers),
      this.#hasJumped ? null : this.#held.join(""),
    );
    this.#appended(slot, this.#position, ledgers, this.#hasJumped);
    this.#noted.clear();
    this.#held = [];
    this.#hasJumped = false;
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
    const [newest] = this.#sql.all<LogRow>("SELECT position FROM log WHERE slot = ?", this.#slot);
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

  #appended(slot: number, position: number, ledgers: StoredPoints, isReset: boolean): void {
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
