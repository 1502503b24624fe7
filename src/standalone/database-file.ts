import { openSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { SqliteDatabase } from "../node-host/sqlite-database.ts";
import { LOG_BYTES, type Checkpointer } from "./checkpointer.ts";
import type { Disk } from "./disk.ts";
import { StorageFailure, type OnStorageFailure } from "./storage-failure.ts";
import { WalSync } from "./wal-sync.ts";

/** How long SQLite waits for another connection to the same file, such as a backup's. */
const BUSY_MS = 5_000;

export interface FileContext {
  disk: Disk;
  checkpointer: Checkpointer;
  onFailure: OnStorageFailure;
}

/** A database in a file, with a write-ahead log. To close it moves the log into the file and removes it. */
export class DatabaseFile {
  readonly database: SqliteDatabase;
  readonly path: string;

  /** Opens the file, or makes it. Throws a `StorageFailure` that names the file if it is damaged. */
  constructor(path: string, { disk, checkpointer, onFailure }: FileContext) {
    this.path = path;
    const sync = new WalSync(path, {
      disk,
      onFailure,
      onWrite: (logBytes) => checkpointer.wrote(this, logBytes),
      onClose: () => checkpointer.forget(this),
    });
    this.database = new SqliteDatabase(openConnection(path), sync);
    sync.watch(openSync(`${path}-wal`, "r+"));
  }
}

function openConnection(path: string): DatabaseSync {
  const isNew = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(path, { timeout: BUSY_MS });
    if (!isNew) check(connection);
    // SQLite itself makes the first page and the file's name durable here: without them, a log counts as
    // nothing.
    connection.exec("PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL");
    connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY");
    connection.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    // The first access makes the log.
    connection.prepare("SELECT count(*) FROM sqlite_schema").get();
    return connection;
  } catch (error) {
    connection?.close();
    throw new StorageFailure(
      `${path} is damaged or cannot be read (${error instanceof Error ? error.message : String(error)})`,
      { cause: error },
    );
  }
}

/** Reads every page. */
function check(connection: DatabaseSync): void {
  const [finding] = connection.prepare("PRAGMA quick_check(1)").all() as { quick_check: string }[];
  if (finding?.quick_check !== "ok") throw new Error(finding?.quick_check ?? "the check has no result");
}
