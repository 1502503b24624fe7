import { sql, type Table } from "drizzle-orm";
import { customType, mysqlSchema, mysqlTable, uniqueIndex, type MySqlColumn } from "drizzle-orm/mysql-core";
import type { StoredColumn, StoredName, TableReader } from "../adapter/stored-tables.ts";
import type { Connection } from "../sql/connection.ts";
import { isAbout } from "./names.ts";
import type { Orm } from "./orm.ts";

interface KeyPart {
  key: string;
  /** Null if it is an expression. */
  column: string | null;
}

/** Reads tables from MySQL's information schema, from the connection's database if they name no other. */
export const mysqlTableReader = <Tx>(connection: Connection<Tx, Orm>): TableReader<Tx> => ({
  read: async (tx, stored, propertiesOf) => {
    const its = isAbout(stored);
    const columns = await connection
      .orm(tx)
      .select({
        name: sql<string>`column_name`.as("name"),
        type: sql<string>`column_type`.mapWith(String).as("type"),
      })
      .from(sql`information_schema.columns`)
      .where(its)
      .orderBy(sql`ordinal_position`);
    if (columns.length === 0) return undefined;
    const parts = await connection
      .orm(tx)
      .select({
        key: sql<string>`index_name`.as("key_name"),
        column: sql<string | null>`column_name`.as("name"),
      })
      .from(sql`information_schema.statistics`)
      .where(sql`${its} AND non_unique = 0`)
      .orderBy(sql`index_name`, sql`seq_in_index`);
    return tableOf(stored, columns, parts, await propertiesOf(columns.map((column) => column.name)));
  },
});

function tableOf(
  { schema, name }: StoredName,
  columns: readonly StoredColumn[],
  parts: readonly KeyPart[],
  properties: readonly string[],
): Table {
  const declared = Object.fromEntries(columns.map((column, index) => [properties[index], asStored(column)]));
  const propertyOf = new Map(columns.map(({ name: column }, index) => [column, properties[index] ?? column]));
  const keys = new Map<string, string[]>();
  // The columns of an expression are not known, and without them the others would be taken for the whole key.
  const withExpressions = new Set(parts.flatMap(({ key, column }) => (column === null ? [key] : [])));
  for (const { key, column } of parts)
    if (column !== null && !withExpressions.has(key))
      keys.set(key, [...(keys.get(key) ?? []), propertyOf.get(column) ?? column]);
  const indexes = (table: Record<string, MySqlColumn>) =>
    [...keys].flatMap(([key, its]) => {
      const [first, ...others] = its.flatMap((each) => table[each] ?? []);
      return first === undefined ? [] : [uniqueIndex(key).on(first, ...others)];
    });
  return schema === undefined
    ? mysqlTable(name, declared, indexes)
    : mysqlSchema(schema).table(name, declared, indexes);
}

/** A column whose values are those of the driver. */
const asStored = ({ name, type }: StoredColumn) =>
  customType<{ data: unknown }>({ dataType: () => type })(name);
