import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { objectTablesFault } from "../node/object-tables.ts";
import { RUNTIME_ENDS_MS, stateDatabases } from "./state-databases.ts";

/** The folder of the databases of the class. */
const DIRECTORY = "leasehold-Directory";

/** Throws if this code cannot work with the tables of an object of a coordinator that is stopped. */
export async function checkTables(stateFolder: string): Promise<void> {
  for (const path of await stateDatabases(stateFolder)) {
    const fault = faultOf(path);
    if (fault !== undefined) throw new Error(`${path} cannot be used: ${fault}`);
  }
}

function faultOf(path: string): string | undefined {
  const connection = new DatabaseSync(path, { timeout: RUNTIME_ENDS_MS });
  try {
    return objectTablesFault(connection, { isDirectory: basename(dirname(path)) === DIRECTORY });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    connection.close();
  }
}
