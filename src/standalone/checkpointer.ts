import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { SqliteDatabase } from "../node-host/sqlite-database.ts";
import { failureOf, StorageFailure, type OnStorageFailure } from "./storage-failure.ts";

/** A database in a file. */
interface LoggedFile {
  readonly path: string;
  readonly database: SqliteDatabase;
}

/** What the thread sends. */
export type CheckpointMessage = "loaded" | CheckpointResult;

export interface CheckpointResult {
  path: string;
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

/** The log of one database. */
interface Log {
  /** The size of its file. SQLite cuts it to `LOG_BYTES` when it uses the log from its start again. */
  bytes: number;
  /** The size at which a checkpoint is due. */
  dueAt: number;
  /** The size when the other thread began. */
  foundAt: number;
  attempts: number;
  isRunning: boolean;
}

/**
 * Keeps write-ahead logs short, without holding up the main thread for long. Another thread moves most of a
 * log into its database, and the main thread the few pages that were written meanwhile. Then SQLite uses the
 * log from its start again, and cuts its file to `LOG_BYTES` (`journal_size_limit`). So a file that is longer
 * tells how long the log is.
 */
export class Checkpointer {
  readonly #logs = new Map<LoggedFile, Log>();
  readonly #onFailure: OnStorageFailure;
  #worker: Worker | undefined;

  constructor(onFailure: OnStorageFailure) {
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
  wrote(file: LoggedFile, bytes: number): void {
    const log = this.#logOf(file);
    // SQLite has used the log from its start again.
    if (bytes < log.bytes) log.dueAt = LOG_BYTES;
    log.bytes = bytes;
    if (bytes > log.dueAt) this.#checkpoint(file, log);
  }

  forget(file: LoggedFile): void {
    this.#logs.delete(file);
  }

  /** Waits for the checkpoint that is running, because the end of its thread would leave a file open. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    // The process must not end here.
    worker.ref();
    while ([...this.#logs.values()].some(({ isRunning }) => isRunning)) await once(worker, "message");
    await worker.terminate();
    this.#worker = undefined;
  }

  #logOf(file: LoggedFile): Log {
    const known = this.#logs.get(file);
    if (known !== undefined) return known;
    const log: Log = { bytes: 0, dueAt: LOG_BYTES, foundAt: 0, attempts: 0, isRunning: false };
    this.#logs.set(file, log);
    return log;
  }

  #checkpoint(file: LoggedFile, log: Log): void {
    if (log.isRunning) return;
    log.isRunning = true;
    log.attempts += 1;
    log.foundAt = log.bytes;
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage(file.path);
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

  #finish({ path, error }: CheckpointResult): void {
    const [file, log] = [...this.#logs].find(([each]) => each.path === path) ?? [];
    if (file === undefined || log === undefined) return;
    log.isRunning = false;
    if (error !== undefined) {
      const failure = failureOf(path, error) ?? new StorageFailure(`${path}: ${error.message}`);
      return this.#onFailure(failure);
    }
    void this.#finishRest(file, log);
  }

  async #finishRest(file: LoggedFile, log: Log): Promise<void> {
    if (log.bytes - log.foundAt > BYTES_OF_REST && log.attempts < ATTEMPTS)
      return this.#checkpoint(file, log);
    try {
      // What is synced here, the checkpoint does not have to sync.
      await file.database.flush();
    } catch {
      // It was reported.
      return;
    }
    if (!this.#logs.has(file)) return;
    file.database.all("PRAGMA wal_checkpoint(PASSIVE)");
    log.attempts = 0;
    // While a backup reads an earlier state, the log cannot be used from its start again.
    log.dueAt = log.bytes + LOG_BYTES;
  }
}
