import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "leasehold-database-";

/** A folder of this process in the temporary one. */
export function makeOwnFolder(): string {
  removeOrphans();
  return mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

export const removeFolder = (folder: string): void =>
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });

/** Processes that were killed removed nothing, and the temporary folder may well be memory. */
function removeOrphans(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? name.slice(PREFIX.length).split("-")[0] : undefined;
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    try {
      removeFolder(join(tmpdir(), name));
    } catch {
      // Another user's.
    }
  }
}
