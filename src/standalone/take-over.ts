import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeFolder, syncFile, syncFolder } from "../../scripts/durable-file.ts";
import { inPart } from "../node-host/part-tables.ts";
import { checkPages, DATABASE } from "./database-file.ts";
import { copyPart, isPart, PROJECTION } from "./parts.ts";

const ENDING = ".sqlite";
/** Where the old files are kept. */
const ASIDE = "file-per-object";

/**
 * Copies a folder with a file for each object into one file, and keeps the old files aside. A start that was
 * interrupted begins again. Throws if a file is damaged, and then changes nothing.
 */
export async function takeOver(folder: string): Promise<void> {
  const old = (await readdir(folder)).filter(
    (file) => file.endsWith(ENDING) && isPart(basename(file, ENDING)),
  );
  const target = join(folder, DATABASE);
  if (!existsSync(target)) {
    const partial = `${target}.partial`;
    await rm(partial, { force: true });
    for (const file of old) copyFile(join(folder, file), partial, basename(file, ENDING));
    if (existsSync(partial)) {
      await syncFile(partial);
      await rename(partial, target);
      await syncFolder(folder);
    }
  }
  const aside = join(folder, ASIDE);
  await makeFolder(aside);
  for (const file of old) await rename(join(folder, file), join(aside, file));
  await syncFolder(aside);
  await syncFolder(folder);
}

/** Copies all rows of a file. To close it moves its log into it. */
function copyFile(path: string, to: string, part: string): void {
  const source = new DatabaseSync(path);
  try {
    checkPages(source);
  } catch (error) {
    throw new Error(`${path} is damaged (${error instanceof Error ? error.message : String(error)})`, {
      cause: error,
    });
  } finally {
    source.close();
  }
  const target = new DatabaseSync(to);
  try {
    target.prepare("ATTACH ? AS old").run(path);
    target.exec("BEGIN");
    copyPart(target, {
      from: "old",
      part,
      ...(part === PROJECTION ? {} : { rename: (sql: string) => inPart(sql, part) }),
    });
    target.exec("COMMIT");
  } finally {
    target.close();
  }
}
