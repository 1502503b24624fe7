import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { makeFolder, syncFile, syncFolder, syncFolders } from "./durable-file.ts";
import { checkDatabase, checkpoint, forEachDatabase, stateDatabases } from "./state-databases.ts";
import { readState } from "./state-file.ts";
import { lockState } from "./state-lock.ts";

/** A file that marks a folder as a copy that is not finished, so that the next copy may remove it. */
const MARKER = "copy-state.partial";

/** Files of the process that has the state, temporary files, and the marker of a copy. */
const isLeftOut = (name: string): boolean => /^(lock\.sqlite.*|owner|.*\.new)$/.test(name) || name === MARKER;

const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

export interface CopiedState {
  files: number;
  bytes: number;
}

/**
 * Copies the state of a coordinator that is stopped. All databases are of one moment, because none can change
 * while the state is locked. The new folder appears under its name once everything in it is durable.
 */
export async function copyState(from: string, to: string): Promise<CopiedState> {
  const [source, target] = [resolve(from), resolve(to)];
  const state = await readState(source);
  if (state === undefined)
    throw new Error(`${source} is not a state folder; set LEASEHOLD_STATE to the folder to copy`);
  if (state.program !== "npm start")
    throw new Error(`${source} is a folder of \`${state.program}\`, which copies it with --backup`);
  const [realSource, realTarget] = [await realpath(source), await realPathOf(target)];
  if (isWithin(realSource, realTarget) || isWithin(realTarget, realSource))
    throw new Error("--to must name a folder outside the state folder");
  if (await isThere(target)) throw new Error(`${target} exists; --to must name a new folder`);
  const lock = await lockState(source, "stop it before you copy the state");
  try {
    if ((await stateDatabases(source)).length === 0)
      throw new Error(`${source} has no databases, so there is nothing to copy`);
    refuse("cannot be copied", await forEachDatabase(source, checkpoint));
    const partial = `${target}.partial`;
    await makePartial(partial);
    const copied = await copyFolder(source, partial);
    refuse("were not copied correctly", await forEachDatabase(partial, checkDatabase));
    await syncFolders(partial);
    await rename(partial, target);
    await rm(join(target, MARKER));
    await syncFolder(target);
    await syncFolder(dirname(target));
    return copied;
  } finally {
    await lock.release();
  }
}

function refuse(what: string, failures: readonly string[]): void {
  if (failures.length > 0) throw new Error(`some databases ${what}: ${failures.join("; ")}`);
}

/** Makes the folder of an unfinished copy. It replaces one that an interrupted copy has left behind. */
async function makePartial(partial: string): Promise<void> {
  if (await isThere(partial)) {
    // A copy that was interrupted before it wrote the marker has left an empty folder.
    const names = (await lstat(partial)).isDirectory() ? await readdir(partial) : undefined;
    if (names === undefined || (names.length > 0 && !names.includes(MARKER)))
      throw new Error(`${partial} exists and is not an unfinished copy; remove it, or choose another --to`);
    await rm(partial, { recursive: true });
  }
  try {
    await makeFolder(partial);
  } catch (error) {
    throw new Error(`the folder ${partial} cannot be made (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    });
  }
  await writeFile(join(partial, MARKER), "");
}

async function copyFolder(from: string, to: string): Promise<CopiedState> {
  const copied: CopiedState = { files: 0, bytes: 0 };
  for (const name of await readdir(from)) {
    if (isLeftOut(name)) continue;
    const [source, target] = [join(from, name), join(to, name)];
    const kind = await stat(source);
    if (kind.isDirectory()) {
      if ((await lstat(source)).isSymbolicLink() && isWithin(await realpath(source), await realpath(from)))
        throw new Error(`${source} is a link to a folder that contains it; remove it`);
      await mkdir(target, PRIVATE_FOLDER);
      const below = await copyFolder(source, target);
      copied.files += below.files;
      copied.bytes += below.bytes;
    } else if (kind.isFile()) {
      await copyFile(source, target);
      await chmod(target, PRIVATE_FILE);
      await syncFile(target);
      copied.files += 1;
      copied.bytes += (await stat(target)).size;
    } else throw new Error(`${source} is neither a file nor a folder; remove it`);
  }
  return copied;
}

/** The real path of a folder that may not exist yet. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw error;
    return join(await realPathOf(dirname(path)), basename(path));
  }
}

function isWithin(folder: string, other: string): boolean {
  const path = relative(folder, other);
  return path !== ".." && !path.startsWith(`..${sep}`) && resolve(path) !== path;
}

/** Also true for a link that leads nowhere. */
const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
