import type { DatabaseSync } from "node:sqlite";
import type { SqlValue } from "../core/ports.ts";
import { directorySchema } from "../core/directory/schema.ts";
import { ledgerSchema } from "../core/ledger/schema.ts";
import { shardSchema } from "../core/shard/schema.ts";
import { tablesFault } from "../core/tables.ts";

const schemas = { ledger: ledgerSchema, shard: shardSchema, directory: directorySchema } as const;

export type ObjectKind = keyof typeof schemas;

/** Where the tables of an object are: in which attached database, and what their names begin with. */
interface Place {
  database?: string;
  prefix?: string;
}

/** Returns why this code cannot work with the tables of an object. Changes nothing. */
export function objectTablesFault(
  connection: DatabaseSync,
  kind: ObjectKind,
  { database = "main", prefix = "" }: Place = {},
): string | undefined {
  const meta = `${prefix}meta`;
  const isMade = connection.prepare(`SELECT 1 FROM ${database}.sqlite_schema WHERE name = ?`).get(meta);
  if (isMade === undefined) return undefined;
  const value = connection.prepare(`SELECT value FROM ${database}."${meta}" WHERE name = ?`);
  return tablesFault((name) => value.get(name)?.["value"] as SqlValue | undefined, schemas[kind]);
}
