import { and, eq, lte, type Column, type Table } from "drizzle-orm";
import type { LedgerPoint } from "../../client/ledger-history.ts";
import type { LedgerHistoryTable } from "../saved-history.ts";
import type { Connection } from "./connection.ts";
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
export abstract class SqlLedgerHistory<Orm> implements LedgerHistoryTable {
  readonly #connection: Connection<unknown, Orm>;
  readonly #table: HistoryTable;

  constructor(connection: Connection<unknown, Orm>, table: HistoryTable) {
    this.#connection = connection;
    this.#table = table;
  }

  /** Inserts rows. A row that exists keeps the larger position. */
  protected abstract upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown>;

  async load(cell: string): Promise<LedgerPoint[]> {
    const { incarnation, position } = this.#table;
    return sqlOrm(this.#connection.orm())
      .select<LedgerPoint>({ incarnation, position })
      .from(this.#table)
      .where(eq(this.#table.cell, cell));
  }

  async save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    await this.upsert(
      this.#connection.orm(),
      points.map((point) => ({ cell, ...point })),
    );
  }

  async remove(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    const { cell: itsCell, incarnation, position } = this.#table;
    for (const point of points)
      await sqlOrm(this.#connection.orm())
        .delete(this.#table)
        .where(and(eq(itsCell, cell), eq(incarnation, point.incarnation), lte(position, point.position)));
  }
}
