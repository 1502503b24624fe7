import { sql } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type { SqlTable } from "../sql/connection.ts";
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
