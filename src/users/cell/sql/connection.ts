import { asc, inArray, type Column, type SQL, type Table } from "drizzle-orm";
import type { StoredForeignKeys } from "../cascades.ts";
import type { Claimable } from "../claimable.ts";
import type { Selection } from "../local.ts";
import type { AnyRow } from "../table.ts";

/** Answers an error as an object with the properties that the database's usual driver gives its errors. */
export type DescribeError = (error: Error) => object;

export const asItIs: DescribeError = (error) => error;

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

type IsolationLevel = "read uncommitted" | "read committed" | "repeatable read" | "serializable";

export interface TransactionConfig {
  /** The server's default, if it is left out. */
  isolationLevel?: IsolationLevel;
}

/** How statements reach the database. `Orm` is drizzle's interface, whatever sends the statements. */
export interface Connection<Tx, Orm> {
  /** Sends statements in the transaction. Without one, each is a transaction by itself. */
  orm(tx?: Tx): Orm;
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: TransactionConfig): Promise<T>;
  /** Answers an error of the driver in the form of node-postgres or mysql2. */
  describeError: DescribeError;
}

export interface SelectOptions {
  limit?: number | undefined;
  /** Locks the rows until the transaction ends, and reads their current state, whatever it read before. */
  isLocking: boolean;
}

/** Reads and writes rows of claimable tables. No call has more than 1,000 rows or ids. */
export interface RowMethods<Tx> {
  /**
   * Answers the stored rows in the order of the given ones. `skipExisting` leaves out rows that violate a
   * unique key. It is only used on PostgreSQL.
   */
  insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting: boolean },
  ): Promise<AnyRow[]>;
  /** Answers rows in the order of their ids. Without `tx`, reads their committed state. */
  select(
    tx: Tx | undefined,
    claimable: Claimable,
    rows: Selection,
    options: SelectOptions,
  ): Promise<AnyRow[]>;
  /** Answers the updated rows. */
  update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]>;
  /** Answers the number of deleted rows. */
  delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number>;
}

/** A claimable table in the form of drizzle. */
export interface SqlTable {
  claimable: Claimable;
  table: Table;
  idColumn: Column;
}

/** Finds the claimable tables in the form of drizzle. */
export interface SqlTables<Tx> {
  /** Reads what only the database knows in `tx`, if it is given. */
  of(tx: Tx | undefined, claimable: Claimable): Promise<SqlTable>;
  /** Answers a condition of the application as SQL. */
  condition(table: SqlTable, where: unknown): SQL | undefined;
}

/** What a cell's database is made of. */
export interface SqlParts<Tx, Orm> {
  connection: Connection<Tx, Orm>;
  tables: SqlTables<Tx>;
  rows: RowMethods<Tx>;
  /** Set if an adapter reads rows itself. */
  ownRows?: RowMethods<Tx> | undefined;
  /** Set if only the database knows the foreign keys. */
  foreignKeys?: StoredForeignKeys;
}

export async function sqlTablesOf<Tx>(
  tables: SqlTables<Tx>,
  claimables: readonly Claimable[],
): Promise<SqlTable[]> {
  const all: SqlTable[] = [];
  for (const claimable of claimables) all.push(await tables.of(undefined, claimable));
  return all;
}

/** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
export async function selectRows<Tx>(
  orm: unknown,
  tables: SqlTables<Tx>,
  its: SqlTable,
  selection: Selection,
  { limit, isLocking }: SelectOptions,
  columns?: Fields<AnyRow>,
): Promise<AnyRow[]> {
  const condition =
    "ids" in selection ? inArray(its.idColumn, [...selection.ids]) : tables.condition(its, selection.where);
  const rows = sqlOrm(orm)
    .select<AnyRow>(columns)
    .from(its.table)
    .where(condition)
    .orderBy(asc(its.idColumn));
  const limited = limit === undefined ? rows : rows.limit(limit);
  return isLocking ? limited.for("update") : limited;
}
