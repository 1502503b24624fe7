import { getTableColumns, is, Table, type SQL } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { SqlTable, SqlTables } from "./connection.ts";

/** Tables that the application declares with drizzle. */
export const drizzleTables: SqlTables<unknown> = {
  of: async (_tx, claimable) => drizzleTable(claimable),
  condition: (_table, where) => where as SQL | undefined,
};

export function drizzleTable(claimable: Claimable): SqlTable {
  const { table, name, idName } = claimable;
  if (!is(table, Table))
    throw invalidArgument("tables", `has ${name}, which is not a table of drizzle, as this database needs`);
  const idColumn = getTableColumns(table)[idName];
  if (idColumn === undefined) throw new Error(`${name} has no column ${idName}`);
  return { claimable, table, idColumn };
}
