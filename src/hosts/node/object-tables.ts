import type { DatabaseSync } from "node:sqlite";
import type { SqlValue } from "../../coordinator/kernel/ports.ts";
import { tablesFault, upgradeFault } from "../../coordinator/kernel/tables.ts";

interface Place {
  /** The attached database. */
  database?: string;
  /** What the names of the object's tables begin with. */
  prefix?: string;
  /** The directory knows the format in force. All others are told it. */
  isDirectory: boolean;
}

/** Returns why this code cannot work with the tables of an object. Changes nothing. */
export function objectTablesFault(
  connection: DatabaseSync,
  { database = "main", prefix = "", isDirectory }: Place,
): string | undefined {
  const meta = `${prefix}meta`;
  const isMade = connection.prepare(`SELECT 1 FROM ${database}.sqlite_schema WHERE name = ?`).get(meta);
  if (isMade === undefined) return undefined;
  const value = connection.prepare(`SELECT value FROM ${database}."${meta}" WHERE name = ?`);
  const read = (name: string): SqlValue | undefined => value.get(name)?.["value"] as SqlValue | undefined;
  return tablesFault(read) ?? (isDirectory ? upgradeFault(read) : undefined);
}
