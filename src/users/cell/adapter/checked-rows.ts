import { getTableColumns } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Selection } from "../local.ts";
import type { RowMethods, SelectOptions } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import type { StoredTables } from "./stored-tables.ts";

/** Refuses values for columns that a table does not have, which would otherwise be dropped. */
export class CheckedRows<Tx> implements RowMethods<Tx> {
  readonly #rows: RowMethods<Tx>;
  readonly #tables: StoredTables<Tx>;

  constructor(rows: RowMethods<Tx>, tables: StoredTables<Tx>) {
    this.#rows = rows;
    this.#tables = tables;
  }

  async insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    await this.#check(tx, claimable, new Set(rows.flatMap((row) => Object.keys(row))));
    return this.#rows.insert(tx, claimable, rows, options);
  }

  select(
    tx: Tx | undefined,
    claimable: Claimable,
    rows: Selection,
    options: SelectOptions,
  ): Promise<AnyRow[]> {
    return this.#rows.select(tx, claimable, rows, options);
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    await this.#check(tx, claimable, new Set(Object.keys(set)));
    return this.#rows.update(tx, claimable, ids, set);
  }

  delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    return this.#rows.delete(tx, claimable, ids);
  }

  async #check(tx: Tx, claimable: Claimable, names: ReadonlySet<string>): Promise<void> {
    const unknown = async (): Promise<string | undefined> => {
      const columns = getTableColumns((await this.#tables.of(tx, claimable)).table);
      return [...names].find((name) => columns[name] === undefined);
    };
    if ((await unknown()) === undefined) return;
    // A migration may have added the column since the table was read.
    this.#tables.forget();
    const missing = await unknown();
    if (missing !== undefined) throw invalidArgument(missing, `is not a column of ${claimable.name}`);
  }
}
