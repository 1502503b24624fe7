/** What replaces a file of one part: restoring one part, and copying those that can be read. */
import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { readState } from "../workerd/state-file.ts";
import { lockState } from "../workerd/state-lock.ts";
import { makeCopy } from "./backup.ts";
import { DATABASE, openDatabase } from "./database-file.ts";
import { attach, checkPart, copyPart, dropPart, isPart, partFault, partsIn } from "./parts.ts";
import { openFolder, clearUse, hasBeenInUse } from "./state-folder.ts";

const databasesOf = (folder: string): string => join(folder, "databases");
const databaseOf = (folder: string): string => join(databasesOf(folder), DATABASE);
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const hasLog = (path: string): boolean => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;

/**
 * Replaces the tables of one part by those of a backup, in one transaction. The other parts stay as they are,
 * so the part goes back in time (H2). Returns the number of its rows.
 */
export async function restorePart(
  stateFolder: string,
  { part, from }: { part: string; from: string },
  { trustCopy = false }: { trustCopy?: boolean | undefined } = {},
): Promise<number> {
  if (!isPart(part))
    throw new Error(
      "--restore-part must name a part: cell-<number>, shard-<number>, directory or projection",
    );
  const backup = resolve(from);
  await checkBackup(stateFolder, backup, trustCopy);
  const lock = await lockState(stateFolder, "stop it before you restore a part");
  try {
    const { databases } = await openFolder(stateFolder, { shards: undefined, trustCopy });
    const connection = openDatabase(join(databases, DATABASE));
    try {
      const path = databaseOf(backup);
      attach(connection, path, "backup", hasLog(path));
      if (!partsIn(connection, "backup").includes(part)) throw new Error(`${backup} has no ${part}`);
      const fault = partFault(connection, "backup", part);
      if (fault !== undefined) throw new Error(`${part} in ${backup} cannot be used: ${fault}`);
      checkPart(connection, "backup", part);
      connection.exec("PRAGMA synchronous = FULL; BEGIN");
      dropPart(connection, part);
      const rows = copyPart(connection, "backup", part);
      connection.exec("COMMIT");
      return rows;
    } finally {
      connection.close();
      await clearUse(databases);
    }
  } finally {
    await lock.release();
  }
}

/** Throws if a folder is no backup of this deployment. */
async function checkBackup(stateFolder: string, backup: string, isTrusted: boolean): Promise<void> {
  const state = await readState(backup);
  if (state === undefined || !existsSync(databaseOf(backup))) throw new Error(`${backup} is no backup`);
  const [ours, theirs] = await Promise.all(
    [stateFolder, backup].map((folder) => readFile(join(folder, "signing-secret"), "utf8")),
  );
  if (ours !== theirs) throw new Error(`${backup} is a backup of another deployment`);
  if (!isTrusted && (await hasBeenInUse(databasesOf(backup))))
    throw new Error(
      `${backup} is a copy of a state in use; use one that --backup has made, or add --trust-copy if ` +
        "nothing wrote to the original while it was copied",
    );
}

export interface Salvaged {
  copied: string[];
  damaged: { part: string; error: string }[];
}

/** Copies each part that can be read without an error into a new state folder. */
export async function salvageParts(
  stateFolder: string,
  to: string,
  { trustCopy = false }: { trustCopy?: boolean | undefined } = {},
): Promise<Salvaged> {
  const database = databaseOf(stateFolder);
  if (!existsSync(database)) throw new Error(`${stateFolder} has no ${DATABASE}`);
  const salvaged: Salvaged = { copied: [], damaged: [] };
  const lock = await lockState(stateFolder, "stop it before you copy its parts");
  try {
    const { databases } = await openFolder(stateFolder, { shards: undefined, trustCopy });
    await makeCopy({ folder: stateFolder, database }, to, "--salvage", async (copy) => {
      const connection = openDatabase(copy);
      try {
        salvageInto(connection, database, salvaged);
      } finally {
        connection.close();
      }
    });
    await clearUse(databases);
  } finally {
    await lock.release();
  }
  return salvaged;
}

function salvageInto(connection: DatabaseSync, path: string, { copied, damaged }: Salvaged): void {
  let parts: string[];
  try {
    attach(connection, path, "old", hasLog(path));
    parts = partsIn(connection, "old");
  } catch (error) {
    throw new Error(`the list of tables in ${path} cannot be read (${messageOf(error)}); restore a backup`, {
      cause: error,
    });
  }
  for (const part of parts) {
    connection.exec("BEGIN");
    try {
      checkPart(connection, "old", part);
      copyPart(connection, "old", part);
      connection.exec("COMMIT");
      copied.push(part);
    } catch (error) {
      if (connection.isTransaction) connection.exec("ROLLBACK");
      damaged.push({ part, error: messageOf(error) });
    }
  }
}
