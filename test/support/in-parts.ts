import { DatabaseSync } from "node:sqlite";
import { inPart, PartTables } from "../../src/hosts/node/part-tables.ts";

const PARTS = ["cell-1", "cell-2"] as const;
/** Statements about no table of an object. */
const OTHER = /^\s*(?:CREATE|ALTER|DROP|PRAGMA|EXPLAIN|VACUUM)\b|\bsqlite_/i;

const checked = new Set<string>();
const known = new Map<string, PartTables>();

/** Makes the tables of a database for two parts of another one. */
function tablesLike(database: DatabaseSync): PartTables {
  const rows = database
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC")
    .all();
  const statements = rows.map(({ sql }) => String(sql));
  const key = statements.join(";");
  const made = known.get(key);
  if (made !== undefined) return made;
  const connection = new DatabaseSync(":memory:");
  for (const part of PARTS) for (const sql of statements) connection.exec(inPart(sql, part));
  const tables = new PartTables(connection);
  known.set(key, tables);
  return tables;
}

/**
 * Prepares a statement that has run, for two parts of one database. Throws if one of them would not find its
 * own tables. So each statement that a test of the core runs is also one that the standalone server can run.
 */
export function checkInParts(database: DatabaseSync, sql: string): void {
  if (checked.has(sql) || OTHER.test(sql)) return;
  checked.add(sql);
  for (const part of PARTS) tablesLike(database).prepare(sql.replaceAll(/\?\d+/g, "?"), part);
}
