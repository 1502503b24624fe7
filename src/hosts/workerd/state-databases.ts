import { rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { objectTablesFault } from "../node/part-tables.ts";

/** Databases of a state folder: one for each object, one for D1, and the runtime's own. */
export async function stateDatabases(stateFolder: string): Promise<string[]> {
  const entries = await readdir(join(stateFolder, "storage"), { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    },
  );
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".sqlite"))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

/** How long the runtime of a killed coordinator may take to end. */
const RUNTIME_ENDS_MS = 5_000;

/**
 * Moves what is only in a database's write-ahead log into its main file, and removes the log. Throws if a
 * runtime still has the database open.
 */
export function checkpoint(path: string): void {
  const database = new DatabaseSync(path, { timeout: RUNTIME_ENDS_MS });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    const result = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number };
    if (result.busy !== 0) throw new Error("another process uses it");
  } finally {
    database.close();
  }
  // SQLite does not use this index in exclusive mode, so it does not remove it either.
  rmSync(`${path}-shm`, { force: true });
}

/** Throws if a database is damaged. It reads every page. */
export function checkDatabase(path: string): void {
  // A database that is opened for reading only would leave an empty write-ahead log behind.
  const database = new DatabaseSync(path);
  try {
    const rows = database.prepare("PRAGMA quick_check(1)").all() as { quick_check: string }[];
    const [finding] = rows.map((row) => row.quick_check);
    if (finding !== "ok") throw new Error(finding);
  } finally {
    database.close();
  }
}

/** Does something with every database, and returns a sentence for each one that failed. */
export async function forEachDatabase(stateFolder: string, act: (path: string) => void): Promise<string[]> {
  const failures: string[] = [];
  for (const path of await stateDatabases(stateFolder)) {
    try {
      act(path);
    } catch (error) {
      failures.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return failures;
}

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
