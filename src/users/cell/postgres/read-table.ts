import { sql, type Table } from "drizzle-orm";
import { customType, PgSchema, pgTable } from "drizzle-orm/pg-core";
import type { StoredColumn, StoredName, TableReader } from "../adapter/stored-tables.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";

/** Reads tables from PostgreSQL's catalog, by the search path if they have no schema. */
export const postgresTableReader = <Tx>(connection: Connection<Tx, Orm>): TableReader<Tx> => ({
  read: async (tx, name, propertiesOf) => {
    const columns = await connection
      .orm(tx)
      .select({
        name: sql<string>`attname::text`.as("name"),
        type: sql<string>`format_type(atttypid, atttypmod)`.as("type"),
      })
      .from(sql`pg_attribute`)
      .where(sql`attrelid = to_regclass(${quoted(name)}) AND attnum > 0 AND NOT attisdropped`)
      .orderBy(sql`attnum`);
    if (columns.length === 0) return undefined;
    return tableOf(name, columns, await propertiesOf(columns.map((column) => column.name)));
  },
});

/** An SQL name in quotes. */
export const quoted = ({ schema, name }: StoredName): string =>
  [schema, name]
    .filter((part) => part !== undefined)
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join(".");

function tableOf(
  { schema, name }: StoredName,
  columns: readonly StoredColumn[],
  properties: readonly string[],
): Table {
  const declared = Object.fromEntries(columns.map((column, index) => [properties[index], asStored(column)]));
  // Unlike this class, the function `pgSchema` refuses the schema `public`.
  return schema === undefined ? pgTable(name, declared) : new PgSchema(schema).table(name, declared);
}

/** A column whose values are those of the driver. */
const asStored = ({ name, type }: StoredColumn) =>
  customType<{ data: unknown }>({ dataType: () => type })(name);
