import { inArray } from "drizzle-orm";
import type { MySqlTable } from "drizzle-orm/mysql-core";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Selection } from "../local.ts";
import {
  selectRows,
  type Connection,
  type RowMethods,
  type SelectOptions,
  type SqlTables,
} from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import type { Orm } from "./schema.ts";
import { affectedRows } from "./session.ts";

export interface InsertHeader {
  /** The first generated id. mysql2 answers a string if a number would not be exact. */
  insertId: number | string | bigint;
}

/**
 * Inserts rows and answers their ids, because MySQL cannot return rows. It returns only the first generated
 * id of a statement. Whether the others follow it depends on the server (innodb_autoinc_lock_mode,
 * auto_increment_increment), so each row without an id gets its own statement. Rows with an id share one.
 */
export async function insertRows(
  claimable: Claimable,
  rows: readonly AnyRow[],
  statement: (rows: readonly AnyRow[]) => Promise<InsertHeader>,
): Promise<unknown[]> {
  if (rows.every((row) => hasId(claimable, row))) {
    await statement(rows);
    return rows.map((row) => row[claimable.idName]);
  }
  const ids: unknown[] = [];
  for (const row of rows) {
    const header = await statement([row]);
    ids.push(hasId(claimable, row) ? row[claimable.idName] : generatedId(claimable, header));
  }
  return ids;
}

const hasId = ({ idName }: Claimable, row: AnyRow): boolean =>
  row[idName] !== undefined && row[idName] !== null;

function generatedId({ name, idName }: Claimable, { insertId }: InsertHeader): number | bigint {
  if (Number(insertId) === 0)
    throw invalidArgument(
      idName,
      `of ${name} is not made by AUTO_INCREMENT, and MySQL returns no other default: give the row an id`,
    );
  return typeof insertId === "string" ? BigInt(insertId) : insertId;
}

/** Answers the rows in the order of the ids that they were inserted with. Throws if one is not among them. */
export function inOrderOfIds(
  claimable: Claimable,
  rows: readonly AnyRow[],
  ids: readonly unknown[],
): AnyRow[] {
  const byId = new Map(rows.map((row) => [claimable.idOf(row), row]));
  // MySQL generates an exact id. If no row has it, the driver may have rounded the ids of the rows.
  const isRounding = ids.some((id) => !byId.has(String(id)));
  for (const row of rows) claimable.checkExact(row, isRounding);
  return ids.map((id) => byId.get(String(id)) ?? notReadBack(claimable, id));
}

function notReadBack({ name, idName }: Claimable, id: unknown): never {
  throw invalidArgument(
    idName,
    `of ${name} was not stored as ${String(id)}, so the row cannot be claimed: use the database's spelling`,
  );
}

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
