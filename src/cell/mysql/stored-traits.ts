import { sql } from "drizzle-orm";
import { getTableConfig, type MySqlTable } from "drizzle-orm/mysql-core";
import type { SqlTable } from "../sql/connection.ts";
import type { StoredTraits } from "../sql/stored-faults.ts";
import { withoutCase } from "../sql/unique-keys.ts";
import type { Orm } from "./orm.ts";

/** Reads the engine and the unique keys of a table from MySQL's information schema. A view has no engine. */
export async function storedTraits(
  orm: Orm,
  { table, idColumn }: SqlTable,
): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as MySqlTable);
  const [stored] = await orm
    .select({
      engine: sql<string | null>`t.engine`.as("table_engine"),
      hasTransactions: sql<number>`e.transactions = 'YES'`.mapWith(Number).as("has_transactions"),
      hasUniqueId: sql<number>`EXISTS (
        SELECT 1 FROM information_schema.statistics s
        WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.non_unique = 0
        GROUP BY s.index_name HAVING COUNT(*) = 1
          AND REPLACE(LOWER(MAX(s.column_name)), '_', '') = ${withoutCase(idColumn.name)})`
        .mapWith(Number)
        .as("has_unique_id"),
    })
    .from(sql`information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine`)
    .where(sql`t.table_schema = ${schema ?? sql`DATABASE()`} AND t.table_name = ${name}`);
  if (stored === undefined) return undefined;
  const paddedColumns = await orm
    .select({
      name: sql<string>`c.column_name`.as("name_of_column"),
      type: sql<string>`c.column_type`.as("type_of_column"),
    })
    .from(sql`information_schema.columns c`)
    .where(
      sql`c.table_schema = ${schema ?? sql`DATABASE()`} AND c.table_name = ${name}
        AND c.data_type = 'char' AND @@sql_mode LIKE '%PAD_CHAR_TO_FULL_LENGTH%'`,
    );
  return {
    isTable: stored.engine !== null,
    hasUniqueId: stored.hasUniqueId === 1,
    engineWithoutTransactions: stored.hasTransactions === 1 ? undefined : (stored.engine ?? undefined),
    paddedColumns,
  };
}
