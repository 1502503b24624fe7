import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { objectTablesFault, type ObjectKind } from "../src/node-host/object-tables.ts";
import { RUNTIME_ENDS_MS, stateDatabases } from "./state-databases.ts";

/** The kind of the objects in each folder of databases. */
const KINDS: Readonly<Record<string, ObjectKind>> = {
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

function faultOf(path: string, kind: ObjectKind): string | undefined {
  const connection = new DatabaseSync(path, { timeout: RUNTIME_ENDS_MS });
  try {
    return objectTablesFault(connection, kind);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    connection.close();
  }
}
