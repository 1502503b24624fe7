import { asc, inArray } from "drizzle-orm";
import type { MySqlTable } from "drizzle-orm/mysql-core";
import type { Claimable } from "../claimable.ts";
import type { Selection } from "../local.ts";
import type { Connection, RowMethods, SelectOptions, SqlTables } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import { affectedRows } from "./driver.ts";
import { inOrderOfIds, insertRows, type InsertHeader } from "./insert.ts";
import type { Orm } from "./orm.ts";

/** Rows of claimable tables, written and read with drizzle's statements. */
export class MysqlRows<Tx> implements RowMethods<Tx> {
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
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    const { idName } = claimable;
    // Generated here, because drizzle would not return the id.
    const rows = given.map((row) => ({ ...row, [idName]: row[idName] ?? idColumn.defaultFn?.() }));
    const statement = async (chunk: readonly AnyRow[]): Promise<InsertHeader> => {
      const [header] = (await this.#connection
        .orm(tx)
        .insert(table as MySqlTable)
        .values(chunk as Record<string, never>[])) as [InsertHeader];
      return header;
    };
    const ids = await insertRows(claimable, rows, {
      statement,
      skipExisting,
      describeError: this.#connection.describeError,
    });
    return this.#readBack(tx, claimable, ids);
  }

  /** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
  async select(
    tx: Tx | undefined,
    claimable: Claimable,
    selection: Selection,
    { limit, isLocking }: SelectOptions,
  ): Promise<AnyRow[]> {
    if ("ids" in selection && selection.ids.length === 0) return [];
    const its = await this.#tables.of(tx, claimable);
    const condition =
      "ids" in selection
        ? inArray(its.idColumn, [...selection.ids])
        : this.#tables.condition(its, selection.where);
    const rows = this.#connection
      .orm(tx)
      .select()
      .from(its.table as MySqlTable)
      .where(condition)
      .orderBy(asc(its.idColumn));
    if (limit !== undefined) void rows.limit(limit);
    return isLocking ? rows.for("update") : rows;
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    await this.#connection
      .orm(tx)
      .update(table as MySqlTable)
      .set(set)
      .where(inArray(idColumn, [...ids]));
    return this.select(tx, claimable, { ids }, { isLocking: true });
  }

  async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    const { table, idColumn } = await this.#tables.of(tx, claimable);
    const deleted = this.#connection
      .orm(tx)
      .delete(table as MySqlTable)
      .where(inArray(idColumn, [...ids]));
    return affectedRows(deleted);
  }

  async #readBack(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    const found = await this.select(tx, claimable, { ids }, { isLocking: true });
    return inOrderOfIds(claimable, found, ids);
  }
}
