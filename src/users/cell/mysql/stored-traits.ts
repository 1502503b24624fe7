import { sql } from "drizzle-orm";
import { getTableConfig, type MySqlTable } from "drizzle-orm/mysql-core";
import type { StoredColumn } from "../adapter/stored-tables.ts";
import type { SqlTable } from "../sql/connection.ts";
import { keysOf, type StoredTraits } from "../sql/stored-faults.ts";
import { isAbout } from "./names.ts";
import type { Orm } from "./orm.ts";

/** Reads the engine and the unique keys of a table from MySQL's information schema. A view has no engine. */
export async function storedTraits(orm: Orm, { table }: SqlTable): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as MySqlTable);
  const its = isAbout({ schema, name });
  const [stored] = await orm
    .select({
      engine: sql<string | null>`t.engine`.as("table_engine"),
      hasTransactions: sql<number>`e.transactions = 'YES'`.mapWith(Number).as("has_transactions"),
    })
    .from(
      sql`(SELECT engine FROM information_schema.tables WHERE ${its}) t
        LEFT JOIN information_schema.engines e ON e.engine = t.engine`,
    );
  if (stored === undefined) return undefined;
  const keyParts = await orm
    .select({
      key: sql<string>`index_name`.as("name_of_key"),
      column: sql<string | null>`column_name`.as("name_of_column"),
    })
    .from(sql`information_schema.statistics`)
    .where(sql`${its} AND non_unique = 0`);
  const columns = await orm
    .select({
      name: sql<string>`column_name`.as("name_of_column"),
      type: sql<string>`column_type`.as("type_of_column"),
    })
    .from(sql`information_schema.columns`)
    .where(
      sql`${its} AND (data_type REGEXP 'binary|blob'
        OR data_type = 'char' AND @@sql_mode LIKE '%PAD_CHAR_TO_FULL_LENGTH%')`,
    );
  return {
    isTable: stored.engine !== null,
    uniqueKeys: keysOf(keyParts),
    hasDeferrableKey: false,
    hasPolicies: false,
    engineWithoutTransactions: stored.hasTransactions === 1 ? undefined : (stored.engine ?? undefined),
    columnsOfBytes: columns.filter(hasBytes),
    paddedColumns: columns.filter((column) => !hasBytes(column)),
  };
}

const hasBytes = ({ type }: StoredColumn): boolean => /binary|blob/.test(type);
