import { copyFile, lstat, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { makeFolder, syncFile, syncFolder } from "../../scripts/durable-file.ts";

/** A file that marks a folder as a backup that is not finished, so that the next one may remove it. */
const MARKER = "backup.partial";
const PRIVATE_FOLDER = 0o700;
/** Pages that are copied in one step. Between two steps, other work of the process runs. */
const PAGES_PER_STEP = 256;

export interface BackedUp {
  files: number;
  bytes: number;
}

/** A state folder, with the databases that it has. */
export interface BackupSource {
  folder: string;
  databases: readonly string[];
}

/**
 * Copies a state while it is used. All databases of the copy are of one moment, because they are opened in
 * one turn of this process, which alone writes them. So the copy is what a kill at that moment would have
 * left. The folder appears under its name once everything in it is durable.
 */
export async function backUp({ folder, databases }: BackupSource, to: string): Promise<BackedUp> {
  const target = resolve(to);
  if (isWithin(resolve(folder), target) || isWithin(target, resolve(folder)))
    throw new Error("--backup must name a folder outside the state folder");
  if (await exists(target)) throw new Error(`${target} exists; --backup must name a new folder`);
  const partial = `${target}.partial`;
  await makePartial(partial);
  const snapshots = openAtOnce(databases);
  try {
    for (const [path, snapshot] of snapshots) {
      const copy = join(partial, relative(folder, path));
      await mkdir(dirname(copy), { recursive: true, mode: PRIVATE_FOLDER });
      await backup(snapshot, copy, { rate: PAGES_PER_STEP });
      check(copy);
    }
  } finally {
    for (const snapshot of snapshots.values()) snapshot.close();
  }
  for (const name of ["state.json", "signing-secret", "dev-keys.json"])
    await copyFile(join(folder, name), join(partial, name));
  const backedUp = await syncAll(partial);
  await rename(partial, target);
  await rm(join(target, MARKER));
  await syncFolder(target);
  await syncFolder(dirname(target));
  return backedUp;
}

/** Begins to read all databases, without a turn of the event loop between them. */
function openAtOnce(paths: readonly string[]): Map<string, DatabaseSync> {
  const snapshots = new Map<string, DatabaseSync>();
  try {
    for (const path of paths) snapshots.set(path, new DatabaseSync(path, { readOnly: true }));
    for (const snapshot of snapshots.values()) {
      snapshot.exec("BEGIN");
      // A transaction begins with its first read.
      snapshot.prepare("SELECT count(*) FROM sqlite_schema").get();
    }
    return snapshots;
  } catch (error) {
    for (const snapshot of snapshots.values()) snapshot.close();
    throw error;
  }
}

function check(path: string): void {
  const database = new DatabaseSync(path);
  try {
    const [row] = database.prepare("PRAGMA quick_check(1)").all() as { quick_check: string }[];
    if (row?.quick_check !== "ok") throw new Error(`${path} was not copied correctly: ${row?.quick_check}`);
  } finally {
    database.close();
  }
}

/** Makes the folder of an unfinished backup. It replaces one that an interrupted backup has left behind. */
async function makePartial(partial: string): Promise<void> {
  if (await exists(partial)) {
    const names = (await lstat(partial)).isDirectory() ? await readdir(partial) : undefined;
    if (names === undefined || (names.length > 0 && !names.includes(MARKER)))
      throw new Error(
        `${partial} exists and is not an unfinished backup; remove it, or choose another --backup`,
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
