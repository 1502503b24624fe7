import { sql, type SQL } from "drizzle-orm";
import type { StoredName } from "../adapter/stored-tables.ts";

/** The bytes in UTF-8, whatever the character set is, because collations would compare letters. */
export const bytes = (text: string | SQL): SQL => sql`CAST(CONVERT(${text} USING utf8mb4) AS BINARY)`;

/**
 * Whether a row of the information schema is about a table. The schema compares names without regard to case,
 * but most servers may have a table `A` beside `a`, also in a database `D` beside `d`.
 */
export function isAbout({ schema, name }: StoredName): SQL {
  const database = schema === undefined ? sql`DATABASE()` : sql`${schema}`;
  const spelled = bytes(sql`CONCAT(table_schema, '.', table_name)`);
  return sql`table_schema = ${database} AND table_name = ${name} AND (@@lower_case_table_names <> 0
    OR ${spelled} = ${bytes(sql`CONCAT(${database}, '.', ${name})`)})`;
}
