import { closeSync, fstatSync } from "node:fs";
import { dirname } from "node:path";
import type { Durability } from "../node/sqlite-database.ts";
import type { Disk } from "./disk.ts";
import { failureOf, syncFailure, type OnStorageFailure } from "./storage-failure.ts";

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
export class WalSync implements Durability {
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
