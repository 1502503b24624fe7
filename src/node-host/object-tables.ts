import type { DatabaseSync } from "node:sqlite";
import type { SqlValue } from "../core/ports.ts";
import { tablesFault } from "../core/tables.ts";

/** Where the tables of an object are: in which attached database, and what their names begin with. */
interface Place {
  database?: string;
  prefix?: string;
}

/** Returns why this code cannot work with the tables of an object. Changes nothing. */
export function objectTablesFault(
  connection: DatabaseSync,
  { database = "main", prefix = "" }: Place = {},
): string | undefined {
  const meta = `${prefix}meta`;
  const isMade = connection.prepare(`SELECT 1 FROM ${database}.sqlite_schema WHERE name = ?`).get(meta);
  if (isMade === undefined) return undefined;
  const value = connection.prepare(`SELECT value FROM ${database}."${meta}" WHERE name = ?`);
  return tablesFault((name) => value.get(name)?.["value"] as SqlValue | undefined);
}
