import { join } from "node:path";
import { makeFolder, syncFolder } from "../workerd/durable-file.ts";
import { openState } from "../workerd/state-file.ts";
import type { BigIntStats } from "node:fs";
import { open, readdir, readFile, rename, rm, stat } from "node:fs/promises";

export interface OpenedFolder {
  /** The folder of the databases. */
  databases: string;
  /** The number of shards with which the folder was made. */
  shards: string;
  signingSecret: string;
}

export interface OpenOptions {
  /** The number of shards that a new folder gets. Undefined: one. */
  shards: string | undefined;
  /** The folder may be a copy, because nothing wrote to the original while it was copied. */
  trustCopy?: boolean | undefined;
}

/**
 * Opens a locked folder, or makes it what `npm run standalone` needs, and marks it as used. Throws an `Error`
 * with one line if the folder is of another format, of `npm start`, or a copy of one that was in use.
 */
export async function openFolder(
  folder: string,
  { shards, trustCopy = false }: OpenOptions,
): Promise<OpenedFolder> {
  const databases = join(folder, "databases");
  const opened = await openState(folder, "npm run standalone", shards);
  await makeFolder(databases);
  await markUse(databases, trustCopy).catch((error: unknown) => {
    throw error instanceof UntrustedCopy ? new Error(refusedCopy(folder)) : error;
  });
  return { databases, ...opened };
}

const refusedCopy = (folder: string): string =>
  `${folder} is a copy of the state of a server that was running or was killed, so its files may be of ` +
  "different moments; copy the original again with --backup, or add --trust-copy if nothing wrote to the " +
  "original while it was copied";

const NAME = "in-use";
const PRIVATE = 0o600;

/** What a copy of a file cannot have in common with it. Some file systems keep no time of creation. */
const identityOf = ({ ino, birthtimeNs }: Pick<BigIntStats, "ino" | "birthtimeNs">): string =>
  `${ino} ${birthtimeNs}`;

/**
 * Marks the folder of the databases as used by this server. The mark stays after a kill, and contains its own
 * identity, so it says of a copy that it is one. Throws an `Error` if the folder is a copy of one that was in
 * use: such a copy may have its files, and even a database and its log, of different moments, and nothing in
 * them shows that for certain.
 *
 * @param isTrusted an operator knows that nothing wrote to the original while it was copied
 */
export async function markUse(databases: string, isTrusted: boolean): Promise<void> {
  const path = join(databases, NAME);
  const mark = await readMark(path);
  const hasLogs = await hasAnyLog(databases);
  if (mark !== undefined && mark.text === mark.identity) return;
  // An empty mark is that of a start that was interrupted before it opened a database. A copy may lack the
  // mark or the logs.
  const isCopy = mark === undefined || mark.text === "" ? hasLogs : true;
  if (isCopy && !isTrusted) throw new UntrustedCopy();
  await write(databases, path);
}

/** Whether the folder is in use, or a copy of one that was. */
export const hasBeenInUse = async (databases: string): Promise<boolean> =>
  (await readMark(join(databases, NAME))) !== undefined || (await hasAnyLog(databases));

/** Removes the mark after all databases were closed. It stays if one of them has kept its log. */
export async function clearUse(databases: string): Promise<void> {
  if (await hasAnyLog(databases)) return;
  await rm(join(databases, NAME), { force: true });
}

/** The folder is a copy that may be torn. */
export class UntrustedCopy extends Error {}

async function readMark(path: string): Promise<{ text: string; identity: string } | undefined> {
  try {
    const text = await readFile(path, "utf8");
    return { text: text.trim(), identity: identityOf(await stat(path, { bigint: true })) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** A program that only reads a closed database leaves an empty log. */
async function hasAnyLog(databases: string): Promise<boolean> {
  const logs = (await readdir(databases)).filter((name) => name.endsWith("-wal"));
  const sizes = await Promise.all(logs.map(async (name) => (await stat(join(databases, name))).size));
  return sizes.some((size) => size > 0);
}

/** The mark is durable before the first log is. A rename keeps the identity. */
async function write(databases: string, path: string): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", PRIVATE);
  try {
    await file.writeFile(identityOf(await file.stat({ bigint: true })));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(databases);
}
