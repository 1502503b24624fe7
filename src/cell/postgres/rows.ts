import { asc, inArray } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Claimable } from "../claimable.ts";
import type { Selection } from "../local.ts";
import type { Connection, RowMethods, SelectOptions, SqlTables } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import type { Orm } from "./orm.ts";

/** Rows of claimable tables, written and read with drizzle's statements. */
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
    rows: readonly AnyRow[],
    { skipExisting }: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    const { table } = await this.#tables.of(tx, claimable);
    const insert = this.#connection
      .orm(tx)
      .insert(table as PgTable)
      .values(rows as Record<string, never>[]);
    return (skipExisting ? insert.onConflictDoNothing() : insert).returning();
  }

  /** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
  async select(
    tx: Tx | undefined,
    claimable: Claimable,
    selection: Selection,
    { limit, isLocking }: SelectOptions,
  ): Promise<AnyRow[]> {
    const its = await this.#tables.of(tx, claimable);
    const condition =
      "ids" in selection
        ? inArray(its.idColumn, [...selection.ids])
        : this.#tables.condition(its, selection.where);
    const rows = this.#connection
      .orm(tx)
      .select()
      .from(its.table as PgTable)
      .where(condition)
      .orderBy(asc(its.idColumn));
    if (limit !== undefined) void rows.limit(limit);
    return isLocking ? rows.for("update") : rows;
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    return this.#connection
      .orm(tx)
      .update(table as PgTable)
      .set(set as Record<string, never>)
      .where(inArray(idColumn, [...ids]))
      .returning();
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
