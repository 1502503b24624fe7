import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a file that only its owner can read. The rename makes sure that no reader sees a partial file. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(temporary, text, { mode: 0o600 });
  // `writeFile` applies the mode only to a new file, and the umask changes it.
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
