import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a file that only its owner can read, and that nobody ever sees half written. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(temporary, text, { mode: 0o600 });
  // The mode above is only for a new file, and subject to the umask.
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
