import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { schemas } from "../src/core/schemas.ts";
import { tablesFault } from "../src/core/tables.ts";
import { SqliteDatabase } from "../src/node-host/sqlite-database.ts";
import { stateDatabases } from "./state-databases.ts";

/** The kind of the objects in each folder of databases. */
const KINDS: Readonly<Record<string, keyof typeof schemas>> = {
  "leasehold-CellLedger": "ledger",
  "leasehold-ClaimShard": "shard",
  "leasehold-Directory": "directory",
};

/** Throws if this code cannot work with the tables of an object of a coordinator that is stopped. */
export async function checkTables(stateFolder: string): Promise<void> {
  for (const path of await stateDatabases(stateFolder)) {
    const kind = KINDS[basename(dirname(path))];
    const fault = kind && faultOf(path, kind);
    if (fault !== undefined) throw new Error(`a ${kind} (${path}) cannot be used: ${fault}`);
  }
}

function faultOf(path: string, kind: keyof typeof schemas): string | undefined {
  const connection = new DatabaseSync(path);
  try {
    // The runtime's own database of the objects has no such table.
    const meta = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get();
    return meta && tablesFault(new SqliteDatabase(connection), schemas[kind]);
  } finally {
    connection.close();
  }
}
