import { readMeta, readMetaNumber, writeMeta } from "../meta.ts";
import type { Placement } from "../placement.ts";
import type { Sql, SqlValue } from "../ports.ts";
import { sourceOrder } from "../../../common/source-order.ts";
import type { Cell } from "./messages.ts";

const CELL =
  "cell, name, address, location_hint AS locationHint, " +
  "created_at_ms AS createdAtMs, updated_at_ms AS updatedAtMs, removed_at_ms AS removedAtMs";

/** A value of which others have copies. Its position is that of its last change. */
interface Setting {
  readonly position: number;
}

/**
 * The SQL statements on the directory's tables. It makes no decisions. Every change takes a position above
 * all earlier ones (H1).
 */
export class DirectoryStore {
  readonly #sql: Sql;
  #position: number;
  #storedPosition: number;
  readonly #settings = new Map<string, Setting>();

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#position = readMetaNumber(sql, "position");
    this.#storedPosition = this.#position;
  }

  /** The position that was assigned last. */
  get position(): number {
    return this.#position;
  }

  /** Takes the position of a change. */
  nextPosition(): number {
    this.#position += 1;
    return this.#position;
  }

  /** Makes sure that all later positions are above this one. */
  raiseTo(position: number): void {
    this.#position = Math.max(this.#position, position);
  }

  /** Must be called at the end of each transaction. Returns whether the transaction has changed something. */
  storePosition(): boolean {
    if (this.#position === this.#storedPosition) return false;
    writeMeta(this.#sql, "position", this.#position);
    this.#storedPosition = this.#position;
    return true;
  }

  get placement(): Placement | undefined {
    const kept = readMeta(this.#sql, "placement");
    return kept === undefined ? undefined : String(kept);
  }

  setPlacement(placement: Placement): void {
    this.#position += 1;
    writeMeta(this.#sql, "placement", placement);
  }

  /**
   * Returns a setting.
   *
   * @param unset - what it is before its first change
   */
  setting<Value extends Setting>(name: string, unset: Value): Value {
    const known = this.#settings.get(name);
    if (known !== undefined) return known as Value;
    const kept = readMeta(this.#sql, name);
    const value = kept === undefined ? unset : (JSON.parse(String(kept)) as Value);
    this.#settings.set(name, value);
    return value;
  }

  /** Stores a setting with a new position. */
  putSetting<Value extends object>(name: string, value: Value): Setting & Value {
    const setting = { position: this.nextPosition(), ...value };
    // It is read again when it is asked for. After a transaction that failed, the instance ends.
    this.#settings.delete(name);
    writeMeta(this.#sql, name, JSON.stringify(setting));
    return setting;
  }

  cell(cell: string): Cell | undefined {
    return this.#all<Cell>(`SELECT ${CELL} FROM cell WHERE cell = ?`, cell)[0];
  }

  /** Returns all cells, also removed ones, in the order of their ids. */
  cells(): Cell[] {
    return this.#all<Cell>(`SELECT ${CELL} FROM cell ORDER BY cell_order`);
  }

  /** Returns the number of ids that were ever registered, and how many of the cells are removed. */
  countCells(): { ids: number; removed: number } {
    const sql = "SELECT count(*) AS ids, count(removed_at_ms) AS removed FROM cell";
    return this.#all<{ ids: number; removed: number }>(sql)[0] ?? { ids: 0, removed: 0 };
  }

  /** The end of a cell is final, so it stays (X5). */
  putCell({ cell, name, address, locationHint, createdAtMs, updatedAtMs, removedAtMs }: Cell): void {
    this.#position += 1;
    this.#all(
      `INSERT INTO cell (cell, cell_order, name, address, location_hint, created_at_ms, updated_at_ms,
                         removed_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (cell) DO UPDATE SET name = excluded.name, address = excluded.address,
                                        updated_at_ms = excluded.updated_at_ms,
                                        removed_at_ms = coalesce(removed_at_ms, excluded.removed_at_ms)`,
      cell,
      sourceOrder(cell),
      name,
      address,
      locationHint,
      createdAtMs,
      updatedAtMs,
      removedAtMs,
    );
  }

  #all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    return this.#sql.all<Row>(statement, ...bindings);
  }
}
