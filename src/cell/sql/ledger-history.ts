import { and, eq, lte, type Column, type Table } from "drizzle-orm";
import type { LedgerPoint } from "../../client/ledger-history.ts";
import type { LedgerHistoryTable } from "../saved-history.ts";
import { sqlOrm } from "./orm.ts";

type HistoryTable = Table & Record<"cell" | "incarnation" | "position", Column>;

export interface HistoryRow extends LedgerPoint {
  cell: string;
}

/**
 * The table of what a cell has seen of its ledger. All processes of the cell share it, so rows only move
 * forward. No statement runs in a transaction of the application, so nothing waits for the rows' locks for
 * longer than one statement.
 */
export abstract class SqlLedgerHistory implements LedgerHistoryTable {
  protected readonly db: unknown;
  readonly #table: HistoryTable;

  constructor(db: unknown, table: HistoryTable) {
    this.db = db;
    this.#table = table;
  }

  /** Inserts rows. A row that exists keeps the larger position. */
  protected abstract upsert(rows: HistoryRow[]): Promise<unknown>;

  async load(cell: string): Promise<LedgerPoint[]> {
    const { incarnation, position } = this.#table;
    return sqlOrm(this.db)
      .select<LedgerPoint>({ incarnation, position })
      .from(this.#table)
      .where(eq(this.#table.cell, cell));
  }

  async save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    await this.upsert(points.map((point) => ({ cell, ...point })));
  }

  async remove(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    const { cell: itsCell, incarnation, position } = this.#table;
    for (const point of points)
      await sqlOrm(this.db)
        .delete(this.#table)
        .where(and(eq(itsCell, cell), eq(incarnation, point.incarnation), lte(position, point.position)));
  }
}
