/**
 * The thread that moves write-ahead logs into their databases. SQLite syncs both files meanwhile, which would
 * hold up everything on the main thread.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import type { CheckpointMessage, CheckpointResult } from "./checkpointer.ts";

function checkpoint(path: string): CheckpointResult {
  const database = new DatabaseSync(path);
  try {
    // Passive: it waits for nobody, and nobody waits for it.
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    return { path };
  } finally {
    database.close();
  }
}

parentPort?.on("message", (path: string) => {
  try {
    parentPort?.postMessage(checkpoint(path));
  } catch (error) {
    const { message, errcode, code } = error as { message: string; errcode?: number; code?: string };
    parentPort?.postMessage({ path, error: { message, errcode, code } } satisfies CheckpointResult);
  }
});
parentPort?.postMessage("loaded" satisfies CheckpointMessage);
