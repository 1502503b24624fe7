import { copyFile, lstat, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { checkPages } from "./database-file.ts";
import { makeFolder, syncFile, syncFolder } from "../workerd/durable-file.ts";

/** A file that marks a folder as a copy that is not finished, so that the next one may remove it. */
const MARKER = "backup.partial";
const PRIVATE_FOLDER = 0o700;
/** Pages that are copied in one step. Between two steps, other work of the process runs. */
const PAGES_PER_STEP = 256;

export interface BackedUp {
  files: number;
  bytes: number;
}

/** A state folder, with the path of its database. */
export interface CopySource {
  folder: string;
  database: string;
}

/** A state that is used. */
export interface UsedSource extends CopySource {
  /** Makes durable what was written. */
  flush: () => Promise<void>;
}

/**
 * Copies a state while it is used. The copy is what a kill at the first read would have left. All of it is
 * durable in the original, too, so the copy is never ahead of that.
 */
export const backUp = (source: UsedSource, to: string): Promise<BackedUp> =>
  makeCopy(source, to, "--backup", async (copy) => {
    const snapshot = new DatabaseSync(source.database, { readOnly: true });
    try {
      snapshot.exec("BEGIN");
      // A transaction begins with its first read.
      snapshot.prepare("SELECT count(*) FROM sqlite_schema").get();
      await backup(snapshot, copy, { rate: PAGES_PER_STEP });
    } finally {
      snapshot.close();
    }
    await source.flush();
  });

/**
 * Makes a state folder from another one, with a database that `fill` makes. It appears under its name once
 * everything in it is durable.
 */
export async function makeCopy(
  { folder, database }: CopySource,
  to: string,
  option: string,
  fill: (database: string) => Promise<void>,
): Promise<BackedUp> {
  const target = resolve(to);
  if (isWithin(resolve(folder), target) || isWithin(target, resolve(folder)))
    throw new Error(`${option} must name a folder outside the state folder`);
  if (await exists(target)) throw new Error(`${target} exists; ${option} must name a new folder`);
  const partial = `${target}.partial`;
  await makePartial(partial, option);
  const copy = join(partial, relative(folder, database));
  await mkdir(dirname(copy), { recursive: true, mode: PRIVATE_FOLDER });
  await fill(copy);
  check(copy);
  for (const name of ["state.json", "signing-secret", "dev-keys.json"])
    await copyFile(join(folder, name), join(partial, name));
  const backedUp = await syncAll(partial);
  await rename(partial, target);
  await rm(join(target, MARKER));
  await syncFolder(target);
  await syncFolder(dirname(target));
  return backedUp;
}

function check(path: string): void {
  const database = new DatabaseSync(path);
  try {
    checkPages(database);
  } finally {
    database.close();
  }
}

/** Makes the folder of an unfinished copy. It replaces one that an interrupted copy has left behind. */
async function makePartial(partial: string, option: string): Promise<void> {
  if (await exists(partial)) {
    const names = (await lstat(partial)).isDirectory() ? await readdir(partial) : undefined;
    if (names === undefined || (names.length > 0 && !names.includes(MARKER)))
      throw new Error(
        `${partial} exists and is not an unfinished copy; remove it, or choose another ${option}`,
      );
    await rm(partial, { recursive: true });
  }
  try {
    await makeFolder(partial);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`the folder ${partial} cannot be made (${code})`, { cause: error });
  }
  await writeFile(join(partial, MARKER), "");
}

/** Makes a folder durable, and counts what is in it. */
async function syncAll(folder: string): Promise<BackedUp> {
  const counted: BackedUp = { files: 0, bytes: 0 };
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      const below = await syncAll(path);
      counted.files += below.files;
      counted.bytes += below.bytes;
    } else if (basename(path) !== MARKER) {
      await syncFile(path);
      counted.files += 1;
      counted.bytes += (await stat(path)).size;
    }
  }
  await syncFolder(folder);
  return counted;
}

function isWithin(folder: string, other: string): boolean {
  const path = relative(folder, other);
  return path !== ".." && !path.startsWith(`..${sep}`) && resolve(path) !== path;
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
