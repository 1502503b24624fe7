import type { Sql } from "../../kernel/ports.ts";
import type { BySide, DigestedClaims, TransferRange } from "./range.ts";
import type { ClaimRow, ExecutionId } from "../../kernel/shard/rows.ts";

export const RANGE_HOLD_TABLES = [
  // The claims of one scope of a cell. It has no entry for a claim without a scope.
  `CREATE INDEX IF NOT EXISTS claim_by_scope ON claim (cell, scope, bucket_type, canonical)
    WHERE scope IS NOT NULL`,
  // One row for each transfer that holds a scope of its source (Y2).
  `CREATE TABLE IF NOT EXISTS range_hold (
     scope TEXT NOT NULL,
     from_cell TEXT NOT NULL,
     cell TEXT NOT NULL,
     lease TEXT NOT NULL,
     incarnation INTEGER NOT NULL,
     counter INTEGER NOT NULL,
     epoch INTEGER NOT NULL,
     held_at_ms INTEGER NOT NULL,
     counted TEXT NOT NULL,
     is_precommitted INTEGER NOT NULL,
     cut_at_ms INTEGER,
     PRIMARY KEY (scope, from_cell)
   ) STRICT, WITHOUT ROWID`,
];

/** The hold of a transfer on all claims of the source that have the scope. Its cell is the destination. */
export interface RangeHoldRow extends ExecutionId {
  scope: string;
  from_cell: string;
  held_at_ms: number;
  /** What each cell had when the transfer was prepared, as JSON (`countedIn`). */
  counted: string;
  /** 1: the ledger may have cut the transfer. 0: it has not (Y6). */
  is_precommitted: 0 | 1;
  /** When the shard learned that the transfer was cut. Null: it was not, as far as the shard knows. */
  cut_at_ms: number | null;
}

/** The most range holds of a shard, all of which are in memory. */
export const MOST_RANGE_HOLDS = 1_000;

/**
 * The range holds of a shard. They are few, so all are in memory. A transaction that fails ends the instance,
 * so the memory is never ahead of the rows.
 */
export class RangeHolds {
  readonly #sql: Sql;
  readonly #onChange: (cell: string) => void;
  readonly #byRange: Map<string, RangeHoldRow>;
  #hasChanged = false;

  /** @param onChange is called with both cells of each range hold that begins, is cut or ends */
  constructor(sql: Sql, onChange: (cell: string) => void) {
    this.#sql = sql;
    this.#onChange = onChange;
    const rows = sql.all<RangeHoldRow>("SELECT * FROM range_hold ORDER BY scope, from_cell");
    this.#byRange = new Map(rows.map((row) => [keyOf(row.from_cell, row.scope), row]));
  }

  get size(): number {
    return this.#byRange.size;
  }

  /** Whether a cut transfer still has claims to rewrite. */
  get hasCut(): boolean {
    return this.all().some(({ cut_at_ms: cutAtMs }) => cutAtMs !== null);
  }

  all(): RangeHoldRow[] {
    return [...this.#byRange.values()];
  }

  /** Returns the range hold on the claims of a cell that have a scope. */
  on({ from, scope }: TransferRange): RangeHoldRow | undefined {
    return this.#byRange.get(keyOf(from, scope));
  }

  /** Returns the range hold whose transfer moves a claim. */
  over(claim: Pick<ClaimRow, "cell" | "scope"> | undefined): RangeHoldRow | undefined {
    return typeof claim?.scope === "string" ? this.on({ from: claim.cell, scope: claim.scope }) : undefined;
  }

  /** Returns the range holds of transfers from or to a cell. */
  involving(cell: string): RangeHoldRow[] {
    return this.all().filter((range) => involves(range, cell));
  }

  /** Counts the range holds of transfers from a cell. */
  countFrom(cell: string): number {
    return this.all().filter(({ from_cell: from }) => from === cell).length;
  }

  /** Returns whether range holds were changed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  insert(row: RangeHoldRow): void {
    this.#sql.all(
      `INSERT INTO range_hold (scope, from_cell, cell, lease, incarnation, counter, epoch, held_at_ms,
                               counted, is_precommitted)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.scope,
      row.from_cell,
      row.cell,
      row.lease,
      row.incarnation,
      row.counter,
      row.epoch,
      row.held_at_ms,
      row.counted,
      row.is_precommitted,
    );
    this.#set(row);
  }

  /** Stores that the ledger may cut the transfer from now on. */
  precommit(row: RangeHoldRow): RangeHoldRow {
    this.#sql.all(
      "UPDATE range_hold SET is_precommitted = 1 WHERE scope = ? AND from_cell = ?",
      row.scope,
      row.from_cell,
    );
    const precommitted: RangeHoldRow = { ...row, is_precommitted: 1 };
    this.#set(precommitted);
    return precommitted;
  }

  /** Stores that the transfer was cut. */
  cut(row: RangeHoldRow, nowMs: number): RangeHoldRow {
    const cut = { ...row, cut_at_ms: nowMs };
    this.#sql.all(
      "UPDATE range_hold SET cut_at_ms = ? WHERE scope = ? AND from_cell = ?",
      nowMs,
      row.scope,
      row.from_cell,
    );
    this.#set(cut);
    return cut;
  }

  delete(row: RangeHoldRow): void {
    this.#sql.all("DELETE FROM range_hold WHERE scope = ? AND from_cell = ?", row.scope, row.from_cell);
    this.#byRange.delete(keyOf(row.from_cell, row.scope));
    this.#changed(row);
  }

  #set(row: RangeHoldRow): void {
    this.#byRange.set(keyOf(row.from_cell, row.scope), row);
    this.#changed(row);
  }

  #changed(row: RangeHoldRow): void {
    this.#hasChanged = true;
    this.#onChange(row.from_cell);
    this.#onChange(row.cell);
  }
}

/** A cell id has no space. */
const keyOf = (from: string, scope: string): string => `${from} ${scope}`;

export const rangeOf = ({ from_cell: from, scope }: RangeHoldRow): TransferRange => ({ from, scope });

export const countedIn = ({ counted }: RangeHoldRow): BySide<DigestedClaims> =>
  JSON.parse(counted) as BySide<DigestedClaims>;

/** Whether only the ledger knows if the transfer was cut (Y4). */
export const mayBeCut = (range: RangeHoldRow): boolean =>
  range.is_precommitted === 1 && range.cut_at_ms === null;

export const involves = (range: RangeHoldRow, cell: string): boolean =>
  range.from_cell === cell || range.cell === cell;
