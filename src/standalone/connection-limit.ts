import { maxOpenFiles } from "../../scripts/open-files.ts";

/** Each connection takes a file descriptor and some memory. */
export const MAX_CONNECTIONS = 4_096;

/** A database, its log twice (for SQLite and for syncs) and its shared memory, and three for a backup. */
const FILES_PER_DATABASE = 7;
/** For the process itself, checkpoints, and cells that are registered later. */
const SPARE_FILES = 320;

/**
 * Returns how many connections leave enough file descriptors for the databases. Without the limit, idle
 * connections could use up all of them, and then a checkpoint could open no file and would end the process.
 */
export function connectionLimit(databases: number, openFiles = maxOpenFiles()): number {
  const spare = Math.min(SPARE_FILES, Math.floor(openFiles / 4));
  const left = openFiles - spare - FILES_PER_DATABASE * databases;
  return Math.max(1, Math.min(MAX_CONNECTIONS, left));
}
