import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { SqliteDatabase } from "../node/sqlite-database.ts";
import { failureOf, StorageFailure, type OnStorageFailure } from "./disk.ts";

/** What the thread sends. */
export type CheckpointMessage = "loaded" | CheckpointResult;

export interface CheckpointResult {
  error?: { message: string; errcode: number | undefined; code: string | undefined };
}

/** A page of SQLite's default size, with its header. */
const FRAME_BYTES = 4_120;
/** A longer log is moved into its database: 16 MB of pages. It is read again at the next start. */
export const LOG_BYTES = 32 + 4_000 * FRAME_BYTES;
/** The main thread moves the rest itself if it is this small. Otherwise the other thread goes on. */
const BYTES_OF_REST = 256 * FRAME_BYTES;
/** As often as the other thread goes on in a row. While writes are faster than it, the log grows. */
const ATTEMPTS = 4;

/**
 * Keeps a write-ahead log short, without holding up the main thread for long. Another thread moves most of it
 * into its database, and the main thread the few pages that were written meanwhile. Then SQLite uses the log
 * from its start again, and cuts its file to `LOG_BYTES` (`journal_size_limit`). So a file that is longer
 * tells how long the log is.
 */
export class Checkpointer {
  readonly #path: string;
  readonly #database: SqliteDatabase;
  readonly #onFailure: OnStorageFailure;
  #worker: Worker | undefined;
  /** The size of the log's file. */
  #bytes = 0;
  /** The size at which a checkpoint is due. */
  #dueAt = LOG_BYTES;
  /** The size when the other thread began. */
  #foundAt = 0;
  #attempts = 0;
  #isRunning = false;

  constructor(path: string, database: SqliteDatabase, onFailure: OnStorageFailure) {
    this.#path = path;
    this.#database = database;
    this.#onFailure = onFailure;
  }

  /**
   * Starts the thread, and waits until it has loaded its program. A server does so at its start, because the
   * program may be replaced later, by an upgrade in place.
   */
  async start(): Promise<void> {
    if (this.#worker !== undefined) return;
    this.#worker = this.#startWorker();
    // The start of a process must not end here.
    this.#worker.ref();
    await once(this.#worker, "message");
    this.#worker.unref();
  }

  /** Must be called after each write, with the size of the log's file. */
  wrote(bytes: number): void {
    // SQLite has used the log from its start again.
    if (bytes < this.#bytes) this.#dueAt = LOG_BYTES;
    this.#bytes = bytes;
    if (bytes > this.#dueAt) this.#checkpoint();
  }

  /** Waits for the checkpoint that is running, because the end of its thread would leave a file open. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    // The process must not end here.
    worker.ref();
    while (this.#isRunning) await once(worker, "message");
    await worker.terminate();
    this.#worker = undefined;
  }

  #checkpoint(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#attempts += 1;
    this.#foundAt = this.#bytes;
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage(this.#path);
  }

  #startWorker(): Worker {
    // The bundle has the thread's program next to this one.
    const program = new URL(`./checkpoint-worker${extname(import.meta.filename)}`, import.meta.url);
    const worker = new Worker(program);
    worker.on("message", (message: CheckpointMessage) => {
      if (message !== "loaded") this.#finish(message);
    });
    worker.on("error", (error) =>
      this.#onFailure(new StorageFailure(`the checkpoints failed: ${error.message}`, { cause: error })),
    );
    // An idle thread must not keep the process alive.
    worker.unref();
    return worker;
  }

  #finish({ error }: CheckpointResult): void {
    this.#isRunning = false;
    if (error !== undefined) {
      const failure = failureOf(this.#path, error) ?? new StorageFailure(`${this.#path}: ${error.message}`);
      return this.#onFailure(failure);
    }
    void this.#finishRest();
  }

  async #finishRest(): Promise<void> {
    if (this.#bytes - this.#foundAt > BYTES_OF_REST && this.#attempts < ATTEMPTS) return this.#checkpoint();
    try {
      // What is synced here, the checkpoint does not have to sync.
      await this.#database.flush();
    } catch {
      // It was reported.
      return;
    }
    if (!this.#database.connection.isOpen) return;
    this.#database.all("PRAGMA wal_checkpoint(PASSIVE)");
    this.#attempts = 0;
    // While a backup reads an earlier state, the log cannot be used from its start again.
    this.#dueAt = this.#bytes + LOG_BYTES;
  }
}
