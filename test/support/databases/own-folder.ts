import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "leasehold-database-";

/** Makes a folder of this process in the system's temporary folder. */
export function makeOwnFolder(): string {
  removeOrphans();
  return mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

export const removeFolder = (folder: string): void =>
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });

/** Removes folders of killed processes, which could not do so. The temporary folder may be in memory. */
function removeOrphans(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? name.slice(PREFIX.length).split("-")[0] : undefined;
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    try {
      removeFolder(join(tmpdir(), name));
    } catch {
      // The folder belongs to another user.
    }
  }
}
