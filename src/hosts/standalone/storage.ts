import { openSync } from "node:fs";
import { join } from "node:path";
import { PartTables } from "../node/part-tables.ts";
import { SqliteDatabase } from "../node/sqlite-database.ts";
import type { ObjectStore } from "../node/object-store.ts";
import { Checkpointer } from "./checkpointer.ts";
import { DATABASE, openDatabase } from "./database-file.ts";
import { realDisk, type Disk } from "./disk.ts";
import { PartStore } from "./part-store.ts";
import { isObject, partsIn, PROJECTION } from "./parts.ts";
import type { OnStorageFailure } from "./storage-failure.ts";
import { WalSync } from "./wal-sync.ts";

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
