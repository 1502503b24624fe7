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
