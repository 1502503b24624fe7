import { maxOpenFiles } from "../workerd/open-files.ts";

/** Each connection takes a file descriptor and some memory. */
export const MAX_CONNECTIONS = 4_096;

/** For the process itself, the database, its checkpoints, and a backup. */
const OTHER_FILES = 128;

/**
 * Returns how many connections leave enough file descriptors for the rest. Without the limit, idle
 * connections could use up all of them, and then a checkpoint could open no file and would end the process.
 */
export function connectionLimit(openFiles = maxOpenFiles()): number {
  const left = openFiles - Math.min(OTHER_FILES, Math.floor(openFiles / 2));
  return Math.max(1, Math.min(MAX_CONNECTIONS, left));
}
