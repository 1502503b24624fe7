import { access, mkdir, open, readdir, rename, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The steps of a durable write. Tests interrupt them. */
export interface FileSteps {
  /** Replaces what the file contains. Only its owner can read the file. */
  write(path: string, text: string): Promise<void>;
  /** Waits until the content of a file survives a power failure. */
  syncFile(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Waits until the names in a folder survive a power failure. */
  syncFolder(path: string): Promise<void>;
}

const onDisk: FileSteps = {
  write: (path, text) =>
    using(path, "w", async (file) => {
      // `open` applies the mode only to a new file, and the umask changes it.
      await file.chmod(PRIVATE);
      await file.writeFile(text);
    }),
  syncFile,
  rename,
  syncFolder,
};

const PRIVATE = 0o600;
const PRIVATE_FOLDER = 0o700;

async function using(path: string, flags: string, use: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags, PRIVATE);
  try {
    await use(file);
  } finally {
    await file.close();
  }
}

/**
 * Writes a file that only its owner can read. After a crash or a power failure at any moment, the file has
 * all of its old content, or all of its new content, or it is missing if it was new. Once this returns, it
 * keeps the new content.
 */
export async function writeDurably(path: string, text: string, steps: FileSteps = onDisk): Promise<void> {
  // A temporary file that an interrupted write left behind is overwritten.
  const temporary = `${path}.new`;
  await steps.write(temporary, text);
  // A disk may store the rename before the content. After a power failure, the file would then be empty.
  await steps.syncFile(temporary);
  await steps.rename(temporary, path);
  await steps.syncFolder(dirname(path));
}

/** Waits until the content of a file survives a power failure. */
export async function syncFile(path: string): Promise<void> {
  // A file that is read-only can be synced, except on Windows.
  await using(path, process.platform === "win32" ? "r+" : "r", (file) => file.sync());
}

/** Waits until the names in a folder survive a power failure. Windows cannot do this for a folder. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform !== "win32") await using(path, "r", (folder) => folder.sync());
}

/** The same for a folder and all folders below it. */
export async function syncFolders(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await syncFolders(join(path, entry.name));
  await syncFolder(path);
}

/**
 * Creates a folder and its parents, durably. Only their owner can read them. Node's recursive `mkdir` never
 * returns if a folder cannot be created in an existing parent, as in /proc.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, PRIVATE_FOLDER);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || (await exists(dirname(folder)))) throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder, PRIVATE_FOLDER);
  }
  await syncFolder(dirname(folder));
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
