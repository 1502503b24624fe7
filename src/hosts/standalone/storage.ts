import { openSync, closeSync, fstatSync } from "node:fs";
import { join, dirname } from "node:path";
import { PartTables } from "../node/part-tables.ts";
import { SqliteDatabase, type Durability } from "../node/sqlite-database.ts";
import type { ObjectStore } from "../node/object-store.ts";
import { Checkpointer } from "./checkpointer.ts";
import { DATABASE, openDatabase } from "./database-file.ts";
import { realDisk, failureOf, syncFailure, type Disk, type OnStorageFailure } from "./disk.ts";
import { PartStore, isObject, partsIn, PROJECTION } from "./parts.ts";

export interface StorageOptions {
  /** The folder of the file. It must exist. */
  folder: string;
  onFailure: OnStorageFailure;
  disk?: Disk;
}

/** The database of a state folder. It has the tables of each object, and those of the projection. */
export class Storage {
  readonly path: string;
  readonly projection: SqliteDatabase;
  readonly #whole: SqliteDatabase;
  readonly #sync: WalSync;
  readonly #tables: PartTables;
  readonly #checkpointer: Checkpointer;
  readonly #stores = new Map<string, ObjectStore>();

  /** Opens and checks the file. Throws a `StorageFailure` that names it if it is damaged. */
  constructor({ folder, onFailure, disk = realDisk }: StorageOptions) {
    this.path = join(folder, DATABASE);
    const connection = openDatabase(this.path);
    this.#sync = new WalSync(this.path, openSync(`${this.path}-wal`, "r+"), {
      disk,
      onFailure,
      onWrite: (logBytes) => this.#checkpointer.wrote(logBytes),
    });
    this.#whole = new SqliteDatabase(connection, this.#sync);
    this.#checkpointer = new Checkpointer(this.path, this.#whole, onFailure);
    this.#tables = new PartTables(connection);
    this.projection = this.#part("");
    for (const name of partsIn(connection)) if (name !== PROJECTION) this.#open(name);
  }

  /** The objects that have tables. */
  get names(): string[] {
    return [...this.#stores.keys()];
  }

  /** Whether everything that was written is durable. */
  get isDurable(): boolean {
    return this.#sync.isDurable;
  }

  /** Returns what an object has stored, and makes its first table at its first use. */
  store(name: string): ObjectStore {
    if (!isObject(name))
      throw new Error("an object must be named cell-<number>, shard-<number> or directory");
    return this.#stores.get(name) ?? this.#open(name);
  }

  /** Waits until everything that was written is durable. */
  flush(): Promise<void> {
    return this.#sync.flush();
  }

  /** Starts the thread of the checkpoints. Otherwise the first checkpoint does so. */
  startCheckpoints(): Promise<void> {
    return this.#checkpointer.start();
  }

  /** Waits until everything that was written is durable, and stops the checkpoints. */
  async settle(): Promise<void> {
    await this.flush();
    await this.#checkpointer.stop();
  }

  /** Closes the database. A host that uses it must be closed. */
  async close(): Promise<void> {
    await this.settle();
    this.#whole.close();
  }

  /** Closes the database without a sync. Only tests need this. */
  abandon(): void {
    this.#whole.close();
  }

  #open(name: string): ObjectStore {
    if (this.#whole.connection.isTransaction)
      throw new Error(`${name} is opened in a transaction of another part, which may undo its tables`);
    const store = new PartStore(this.#part(name));
    this.#stores.set(name, store);
    return store;
  }

  #part(name: string): SqliteDatabase {
    return new SqliteDatabase(this.#whole.connection, this.#sync, { name, tables: this.#tables });
  }
}

interface WalSyncOptions {
  disk: Disk;
  onFailure: OnStorageFailure;
  /** Gets the size of the log's file. */
  onWrite: (logBytes: number) => void;
}

/**
 * Makes the writes of one database durable, several with one sync. SQLite appends each transaction to the
 * write-ahead log and, with `synchronous = NORMAL`, doesn't wait for the disk. One `fdatasync` of the log
 * covers all transactions before it. It runs on another thread, while this one does other work.
 *
 * A checkpoint moves transactions from the log into the database, and syncs both before the log is used from
 * its start again. So what a later sync of the log doesn't cover is durable already.
 */
class WalSync implements Durability {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #onFailure: OnStorageFailure;
  readonly #onWrite: WalSyncOptions["onWrite"];
  readonly #logFd: number;
  /** The log is new, so its name in the folder has to survive as well. */
  #isFolderSynced = false;
  /** Starts at 1, because a new log is a write. */
  #written = 1;
  #synced = 0;
  #syncing: Promise<void> | undefined;

  /** @param logFd - only for syncs; closed after SQLite has closed the log */
  constructor(path: string, logFd: number, { disk, onFailure, onWrite }: WalSyncOptions) {
    this.#path = path;
    this.#logFd = logFd;
    this.#disk = disk;
    this.#onFailure = onFailure;
    this.#onWrite = onWrite;
  }

  get isDurable(): boolean {
    return this.#synced === this.#written;
  }

  written(): void {
    this.#written += 1;
    this.#onWrite(fstatSync(this.#logFd).size);
  }

  async flush(): Promise<void> {
    const upTo = this.#written;
    // A sync that began before the last write doesn't cover it, so the next one follows, for all who wait.
    while (this.#synced < upTo) await (this.#syncing ??= this.#sync());
  }

  failed(error: unknown): void {
    const failure = failureOf(this.#path, error);
    if (failure !== undefined) this.#onFailure(failure);
  }

  closed(): void {
    closeSync(this.#logFd);
  }

  async #sync(): Promise<void> {
    // What becomes ready in the same turn shares the sync.
    await new Promise((resume) => void setImmediate(resume));
    const covered = this.#written;
    try {
      await this.#disk.syncFile(this.#logFd);
      if (!this.#isFolderSynced) await this.#disk.syncFolder(dirname(this.#path));
    } catch (error) {
      const failure = syncFailure(`${this.#path}-wal`, error);
      this.#onFailure(failure);
      throw failure;
    }
    this.#isFolderSynced = true;
    this.#synced = covered;
    this.#syncing = undefined;
  }
}
