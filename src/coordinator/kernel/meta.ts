import type { Sql, SqlValue } from "./ports.ts";

/** Single values of an object, one row each. */
export const META_TABLE =
  "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID";

export function readMeta(sql: Sql, name: string): SqlValue | undefined {
  return sql.all<{ value: SqlValue }>("SELECT value FROM meta WHERE name = ?", name)[0]?.value;
}

export function readMetaNumber(sql: Sql, name: string): number {
  return Number(readMeta(sql, name) ?? 0);
}

export function writeMeta(sql: Sql, name: string, value: SqlValue): void {
  sql.all(
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    name,
    value,
  );
}

export function deleteMeta(sql: Sql, name: string): void {
  sql.all("DELETE FROM meta WHERE name = ?", name);
}
