import { inArray } from "drizzle-orm";
import type { MySqlTable } from "drizzle-orm/mysql-core";
import type { Claimable } from "../claimable.ts";
import type { Selection } from "../local.ts";
import type { Connection, RowMethods, SelectOptions, SqlTables } from "../sql/connection.ts";
import { selectRows } from "../sql/select-rows.ts";
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

  async insert(tx: Tx, claimable: Claimable, given: readonly AnyRow[]): Promise<AnyRow[]> {
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
    const ids = await insertRows(claimable, rows, statement);
    return this.#readBack(tx, claimable, ids);
  }

  async select(
    tx: Tx | undefined,
    claimable: Claimable,
    selection: Selection,
    options: SelectOptions,
  ): Promise<AnyRow[]> {
    if ("ids" in selection && selection.ids.length === 0) return [];
    const its = await this.#tables.of(tx, claimable);
    return selectRows(this.#connection.orm(tx), this.#tables, its, selection, options);
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
