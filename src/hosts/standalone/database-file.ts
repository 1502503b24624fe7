import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { LOG_BYTES } from "./checkpointer.ts";
import { StorageFailure } from "./disk.ts";

/** The file in the folder of the databases that has all parts. */
export const DATABASE = "leasehold.sqlite";

/** How long SQLite waits for another connection to the same file, such as a backup's. */
const BUSY_MS = 5_000;

/**
 * Opens a file with a write-ahead log, or makes it. To close it moves the log into the file and removes it.
 * Throws a `StorageFailure` that names the file if it is damaged.
 */
export function openDatabase(path: string): DatabaseSync {
  const isNew = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(path, { timeout: BUSY_MS });
    if (!isNew) checkPages(connection);
    // SQLite itself makes the first page and the file's name durable here: without them, a log counts as
    // nothing.
    connection.exec("PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL");
    connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY");
    connection.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    // The first access makes the log.
    connection.prepare("SELECT count(*) FROM sqlite_schema").get();
    // The process before may have ended because a sync failed. Then the disk may lack pages of the log that
    // the system still shows, and nothing may be built on them.
    connection.exec(
      "PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA synchronous = NORMAL",
    );
    return connection;
  } catch (error) {
    connection?.close();
    throw new StorageFailure(
      `${path} is damaged or cannot be read (${error instanceof Error ? error.message : String(error)}); ` +
        "restore a backup, or copy the parts that can be read with --salvage",
      { cause: error },
    );
  }
}

/** Reads every page. Throws what is wrong. */
export function checkPages(connection: DatabaseSync): void {
  const [finding] = connection.prepare("PRAGMA quick_check(1)").all() as { quick_check: string }[];
  if (finding?.quick_check !== "ok") throw new Error(finding?.quick_check ?? "the check has no result");
}
