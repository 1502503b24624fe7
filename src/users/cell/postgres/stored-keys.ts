import { sql } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type { StoredColumn } from "../adapter/stored-tables.ts";
import type { SqlTable } from "../sql/connection.ts";
import { keysOf, type StoredTraits } from "../sql/stored-faults.ts";
import type { Orm } from "./orm.ts";
import { quoted } from "./read-table.ts";

/** Reads the columns and expressions of a unique key from PostgreSQL's catalog. */
export async function storedKeyParts(orm: Orm, { table }: SqlTable, key: string): Promise<string[]> {
  const { schema, name } = getTableConfig(table as PgTable);
  const parts = await orm
    .select({ part: sql<string>`pg_get_indexdef(indexrelid, place, true)`.as("part") })
    .from(sql`pg_index JOIN pg_class ON oid = indexrelid, generate_series(1, indnkeyatts) AS place`)
    .where(sql`indrelid = to_regclass(${quoted({ schema, name })}) AND relname = ${key}`)
    .orderBy(sql`place`);
  return parts.map(({ part }) => part);
}

/**
 * Reads what only PostgreSQL's catalog knows about a table. A key of a table from which others inherit says
 * nothing about their rows.
 */
export async function storedTraits(orm: Orm, { table }: SqlTable): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as PgTable);
  const relation = sql`to_regclass(${quoted({ schema, name })})`;
  const [traits] = await orm
    .select({
      isTable: sql<boolean>`relkind IN ('r', 'p')`.as("is_table"),
      hasPolicies: sql<boolean>`relrowsecurity`.as("has_policies"),
    })
    .from(sql`pg_class`)
    .where(sql`oid = ${relation}`);
  if (traits === undefined) return undefined;
  const keyParts = await orm
    .select({
      key: sql<string>`indexrelid::text`.as("key"),
      column: sql<string>`attname::text`.as("name"),
      isDeferrable: sql<boolean>`NOT indimmediate`.as("is_deferrable"),
    })
    .from(
      sql`pg_index JOIN pg_attribute
        ON attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])`,
    )
    .where(
      sql`indrelid = ${relation} AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
        AND NOT EXISTS (SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent
          WHERE inhparent = indrelid AND relkind = 'r')`,
    );
  const type = sql<string>`CASE typtype WHEN 'd' THEN format_type(typbasetype, typtypmod)
    ELSE format_type(atttypid, atttypmod) END`;
  const columns = await orm
    .select({ name: sql<string>`attname::text`.as("name"), type: type.as("type") })
    .from(sql`pg_attribute JOIN pg_type ON pg_type.oid = atttypid`)
    .where(sql`attrelid = ${relation} AND attnum > 0 AND (${type} LIKE 'character(%' OR ${type} = 'bytea')`);
  return {
    ...traits,
    uniqueKeys: keysOf(keyParts),
    hasDeferrableKey: keyParts.some(({ isDeferrable }) => isDeferrable),
    columnsOfBytes: columns.filter(hasBytes),
    paddedColumns: columns.filter((column) => !hasBytes(column)),
  };
}

const hasBytes = ({ type }: StoredColumn): boolean => type === "bytea";
