import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { SqliteDatabase } from "../node-host/sqlite-database.ts";
import type { ObjectStore } from "../node-host/object-store.ts";
import { Checkpointer } from "./checkpointer.ts";
import { DatabaseFile, type FileContext } from "./database-file.ts";
import { realDisk, type Disk } from "./disk.ts";
import { FileStore } from "./file-store.ts";
import type { OnStorageFailure } from "./storage-failure.ts";

/** The names of objects, which are those of their files. */
const OBJECT = /^(?:cell-\d+|shard-\d+|directory)$/;
const ENDING = ".sqlite";

export interface StorageOptions {
  /** The folder of the files. It must exist. */
  folder: string;
  onFailure: OnStorageFailure;
  disk?: Disk;
}

/** The databases of a state folder: one for each object, and one for the projection. */
export class Storage {
  readonly #folder: string;
  readonly #context: FileContext;
  readonly #stores = new Map<string, FileStore>();
  readonly #projection: DatabaseFile;

  /** Opens and checks all files. Throws a `StorageFailure` that names a damaged one. */
  constructor({ folder, onFailure, disk = realDisk }: StorageOptions) {
    this.#folder = folder;
    this.#context = { disk, onFailure, checkpointer: new Checkpointer(onFailure) };
    this.#projection = new DatabaseFile(this.#pathOf("projection"), this.#context);
    for (const name of objectsIn(folder)) this.#open(name);
  }

  /** The objects that have a file. */
  get names(): string[] {
    return [...this.#stores.keys()];
  }

  get projection(): SqliteDatabase {
    return this.#projection.database;
  }

  /** Returns what an object has stored, and makes its file at its first use. */
  store(name: string): ObjectStore {
    if (!OBJECT.test(name))
      throw new Error("an object must be named cell-<number>, shard-<number> or directory");
    return this.#stores.get(name) ?? this.#open(name);
  }

  /** All databases. */
  get files(): DatabaseFile[] {
    return [this.#projection, ...[...this.#stores.values()].map(({ file }) => file)];
  }

  /** Starts the thread of the checkpoints. Otherwise the first checkpoint does so. */
  startCheckpoints(): Promise<void> {
    return this.#context.checkpointer.start();
  }

  /** Waits until everything that was written is durable, and stops the checkpoints. Before `Host.close`. */
  async settle(): Promise<void> {
    for (const { database } of this.files) await database.flush();
    await this.#context.checkpointer.stop();
  }

  /** Closes all databases. A host that uses them closes those of its objects itself. */
  async close(): Promise<void> {
    await this.settle();
    for (const { database } of this.files) database.close();
  }

  #open(name: string): FileStore {
    const store = new FileStore(this.#pathOf(name), this.#context);
    this.#stores.set(name, store);
    return store;
  }

  #pathOf(name: string): string {
    return join(this.#folder, `${name}${ENDING}`);
  }
}

const objectsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .filter((name) => OBJECT.test(name));
