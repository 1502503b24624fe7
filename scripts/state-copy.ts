import { copyFile, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { syncFile, syncFolder, syncFolders } from "./durable-file.ts";
import { checkDatabase, checkpoint, forEachDatabase } from "./state-databases.ts";
import { lockState } from "./state-lock.ts";

/** Files of the process that has the state, and temporary files. */
const isLeftOut = (name: string): boolean => /^(lock\.sqlite.*|owner|.*\.new)$/.test(name);

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
  if (!(await exists(join(source, "signing-secret"))))
    throw new Error(`${source} is not a state folder; set LEASEHOLD_STATE to the folder to copy`);
  if (isWithin(source, target) || isWithin(target, source))
    throw new Error("--to must name a folder outside the state folder");
  if (await exists(target)) throw new Error(`${target} exists; --to must name a new folder`);
  const lock = await lockState(source, "stop it before you copy the state");
  try {
    refuse("cannot be copied", await forEachDatabase(source, checkpoint));
    const partial = `${target}.partial`;
    // An interrupted copy may have left it behind.
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    const copied = await copyFolder(source, partial);
    refuse("were not copied correctly", await forEachDatabase(partial, checkDatabase));
    await syncFolders(partial);
    await rename(partial, target);
    await syncFolder(dirname(target));
    return copied;
  } finally {
    await lock.release();
  }
}

function refuse(what: string, failures: readonly string[]): void {
  if (failures.length > 0) throw new Error(`some databases ${what}: ${failures.join("; ")}`);
}

async function copyFolder(from: string, to: string): Promise<CopiedState> {
  const copied: CopiedState = { files: 0, bytes: 0 };
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      await mkdir(target);
      const below = await copyFolder(source, target);
      copied.files += below.files;
      copied.bytes += below.bytes;
    } else {
      await copyFile(source, target);
      await syncFile(target);
      copied.files += 1;
      copied.bytes += (await stat(target)).size;
    }
  }
  return copied;
}

function isWithin(folder: string, other: string): boolean {
  const path = relative(folder, other);
  return path !== ".." && !path.startsWith(`..${sep}`) && resolve(path) !== path;
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
