import type { Column, SQL, Table } from "drizzle-orm";

/** The selected columns and expressions, under the names of the row's fields. */
export type Fields<Row> = { [Name in keyof Row]: Column | SQL | SQL.Aliased };

export interface Select<Row> extends PromiseLike<Row[]> {
  where(condition: SQL | undefined): Select<Row>;
  orderBy(...by: SQL[]): Select<Row>;
  limit(rows: number): Select<Row>;
  for(lock: "update"): Select<Row>;
}

/** Methods that drizzle's databases share, although drizzle gives each dialect types of its own. */
export interface SqlOrm {
  /** Selects all columns if `fields` is missing. */
  select<Row>(fields?: Fields<Row>): { from(table: Table | SQL): Select<Row> };
  delete(table: Table): { where(condition: SQL | undefined): PromiseLike<unknown> };
}

/** A database or transaction as the part of it that all dialects share. */
export const sqlOrm = (orm: unknown): SqlOrm => orm as SqlOrm;
