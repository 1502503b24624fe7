import { inArray } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Claimable } from "../claimable.ts";
import type { Selection } from "../local.ts";
import {
  selectRows,
  type Connection,
  type RowMethods,
  type SelectOptions,
  type SqlTables,
} from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import { columnsWithOid } from "./claimable-tables.ts";
import type { Orm } from "./schema.ts";

/** Rows of claimable tables, written and read with drizzle's statements. Answers them with `TABLE_OID`. */
export class PostgresRows<Tx> implements RowMethods<Tx> {
  readonly #connection: Connection<Tx, Orm>;
  readonly #tables: SqlTables<Tx>;

  constructor(connection: Connection<Tx, Orm>, tables: SqlTables<Tx>) {
    this.#connection = connection;
    this.#tables = tables;
  }

  async insert(
    tx: Tx,
    claimable: Claimable,
    given: readonly AnyRow[],
    { skipExisting }: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    const { table } = await this.#tables.of(tx, claimable);
    const insert = this.#connection
      .orm(tx)
      .insert(table as PgTable)
      .values(given as Record<string, never>[]);
    return (skipExisting ? insert.onConflictDoNothing() : insert).returning(columnsWithOid(table));
  }

  async select(
    tx: Tx | undefined,
    claimable: Claimable,
    selection: Selection,
    options: SelectOptions,
  ): Promise<AnyRow[]> {
    const its = await this.#tables.of(tx, claimable);
    const orm = this.#connection.orm(tx);
    return selectRows(orm, this.#tables, its, selection, options, columnsWithOid(its.table));
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    return this.#connection
      .orm(tx)
      .update(table as PgTable)
      .set(set as Record<string, never>)
      .where(inArray(idColumn, [...ids]))
      .returning(columnsWithOid(table));
  }

  async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    const deleted = await this.#connection
      .orm(tx)
      .delete(table as PgTable)
      .where(inArray(idColumn, [...ids]))
      .returning({ id: idColumn as PgColumn });
    return deleted.length;
  }
}
