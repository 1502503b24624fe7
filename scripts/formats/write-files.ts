import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Writes files, by their paths from a folder. Makes the folders that are missing. */
export function writeFiles(folder: string, texts: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
