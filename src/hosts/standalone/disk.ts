import { fdatasync, fsync, closeSync, openSync } from "node:fs";

/** What a disk is asked for, besides what SQLite does itself. Tests make it fail. */
export interface Disk {
  /** Resolves when the content of an open file survives a power failure. */
  syncFile(fd: number): Promise<void>;
  /** Resolves when the names in a folder survive a power failure. Windows cannot do this for a folder. */
  syncFolder(path: string): Promise<void>;
}

const settle =
  (resolve: () => void, reject: (error: Error) => void) =>
  (error: Error | null): void => {
    if (error === null) resolve();
    else reject(error);
  };

export const realDisk: Disk = {
  syncFile: (fd) => new Promise((resolve, reject) => fdatasync(fd, settle(resolve, reject))),
  syncFolder: async (path) => {
    if (process.platform === "win32") return;
    const fd = openSync(path, "r");
    try {
      await new Promise<void>((resolve, reject) => fsync(fd, settle(resolve, reject)));
    } finally {
      closeSync(fd);
    }
  },
};

/** Why the process has to end: from now on, nobody can say what is on the disk. */
export class StorageFailure extends Error {}

/** Ends the process. Nothing may leave it after that, so this must not return in production. */
export type OnStorageFailure = (failure: StorageFailure) => void;

/** SQLite's primary codes (sqlite.org/rescode.html) after which the process cannot go on. */
const FATAL: ReadonlyMap<number, string> = new Map([
  [7, "there is not enough memory"],
  [8, "the file or the file system is read-only"],
  [10, "the disk failed"],
  [11, "the file is damaged"],
  [13, "the disk is full"],
  [14, "the file cannot be opened"],
  [26, "the file is no database"],
]);

/** Returns undefined for an error that is about a statement and not about the storage. */
export function failureOf(path: string, error: unknown): StorageFailure | undefined {
  const { code, errcode, message } = error as { code?: string; errcode?: number; message?: string };
  if (code !== "ERR_SQLITE_ERROR") return undefined;
  const reason = FATAL.get((errcode ?? 0) & 0xff);
  if (reason === undefined) return undefined;
  return new StorageFailure(`${path}: ${reason} (SQLite: ${message}, code ${errcode})`, { cause: error });
}

/** After a failed sync, the kernel may have dropped what was to be written, so it is never tried again. */
export const syncFailure = (path: string, error: unknown): StorageFailure =>
  new StorageFailure(
    `${path} could not be made durable (${error instanceof Error ? error.message : String(error)}); ` +
      "what was written last may be lost. Check the disk, then start again",
    { cause: error },
  );
