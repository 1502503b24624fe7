import { sql } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type { SqlTable } from "../sql/connection.ts";
import type { StoredTraits } from "../sql/stored-faults.ts";
import { withoutCase } from "../sql/unique-keys.ts";
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

/** Whether a unique key of the table can be checked at COMMIT. */
export async function hasDeferrableKey(orm: Orm, { table }: SqlTable): Promise<boolean> {
  const { schema, name } = getTableConfig(table as PgTable);
  const found = await orm
    .select({ key: sql`1`.as("key") })
    .from(sql`pg_index`)
    .where(
      sql`indrelid = to_regclass(${quoted({ schema, name })}) AND indisunique AND NOT indimmediate LIMIT 1`,
    );
  return found.length > 0;
}

/**
 * Reads what only PostgreSQL's catalog knows about a table. A key of a table from which others inherit says
 * nothing about their rows.
 */
export async function storedTraits(
  orm: Orm,
  { table, idColumn }: SqlTable,
): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as PgTable);
  const relation = sql`to_regclass(${quoted({ schema, name })})`;
  const [traits] = await orm
    .select({
      hasUniqueId: sql<boolean>`EXISTS (
        SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE indrelid = pg_class.oid AND indisunique AND indisvalid AND indpred IS NULL AND indnkeyatts = 1
          AND (attname = ${idColumn.name}
            OR replace(lower(attname), '_', '') = ${withoutCase(idColumn.name)}))
        AND NOT (relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = pg_class.oid))`.as(
        "has_unique_id",
      ),
      isTable: sql<boolean>`relkind IN ('r', 'p')`.as("is_table"),
    })
    .from(sql`pg_class`)
    .where(sql`oid = ${relation}`);
  if (traits === undefined) return undefined;
  const type = sql<string>`CASE typtype WHEN 'd' THEN format_type(typbasetype, typtypmod)
    ELSE format_type(atttypid, atttypmod) END`;
  const paddedColumns = await orm
    .select({ name: sql<string>`attname::text`.as("name"), type: type.as("type") })
    .from(sql`pg_attribute JOIN pg_type ON pg_type.oid = atttypid`)
    .where(sql`attrelid = ${relation} AND attnum > 0 AND ${type} LIKE 'character(%'`);
  return { ...traits, paddedColumns };
}
