/**
 * The thread that moves the write-ahead log into its database. SQLite syncs both files meanwhile, which would
 * hold up everything on the main thread.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import type { CheckpointMessage, CheckpointResult } from "./checkpointer.ts";

function checkpoint(path: string): void {
  const database = new DatabaseSync(path);
  try {
    // Passive: it waits for nobody, and nobody waits for it.
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA wal_checkpoint(PASSIVE)");
  } finally {
    database.close();
  }
}

parentPort?.on("message", (path: string) => {
  try {
    checkpoint(path);
    parentPort?.postMessage({} satisfies CheckpointResult);
  } catch (error) {
    const { message, errcode, code } = error as { message: string; errcode?: number; code?: string };
    parentPort?.postMessage({ error: { message, errcode, code } } satisfies CheckpointResult);
  }
});
parentPort?.postMessage("loaded" satisfies CheckpointMessage);
