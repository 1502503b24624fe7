/** Tables as an application declares them: with drizzle, or by name for other adapters. */
import {
  getTableColumns,
  getTableName,
  getTableUniqueName,
  is,
  Table,
  type Column,
  type SQL,
} from "drizzle-orm";

/** A row of any table. */
export type AnyRow = Readonly<Record<string, unknown>>;

/**
 * A table that an adapter knows by its name. Its columns are read from the database. The type parameters are
 * those of a stored row, of a row to insert, of a condition, and of the new values of an update.
 */
export class NamedTable<R = AnyRow, N = AnyRow, W = unknown, U = Partial<N>> {
  declare readonly $inferSelect: R;
  declare readonly $inferInsert: N;
  declare readonly $where: W;
  declare readonly $inferUpdate: U;
  /** As the adapter knows it. */
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A table of drizzle, or a named one. */
export type AnyTable = Table | NamedTable<object, object>;

/** A stored row. */
export type Row<T extends AnyTable> = T["$inferSelect"];
/** A row to insert. */
export type NewRow<T extends AnyTable> = T["$inferInsert"];
/** The new values of an update. */
export type RowUpdate<T extends AnyTable> =
  T extends NamedTable<object, object, unknown, infer U> ? U : Partial<NewRow<T>>;
/** A condition on the rows of a table. Undefined matches all of them. */
export type Where<T extends AnyTable> = (T extends NamedTable<object, object, infer W> ? W : SQL) | undefined;

export const tableName = (table: AnyTable): string => (is(table, Table) ? getTableName(table) : table.name);

/** With its schema, if it names one. */
export const fullName = (table: AnyTable): string =>
  is(table, Table) ? getTableUniqueName(table) : table.name;

/** The columns by their names in rows. Undefined for a named table, whose columns only the database knows. */
export const declaredColumns = (table: AnyTable): Record<string, Column> | undefined =>
  is(table, Table) ? getTableColumns(table) : undefined;
