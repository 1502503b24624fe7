import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writePrivate } from "./private-file.ts";

/**
 * On one machine all objects share one thread: more shards spread nothing there, and make smaller batches.
 */
const NEW_STATE_SHARDS = "1";
/** What a state was made with before it said so itself. */
const SHARDS_BEFORE_FILE = "4";

const fileOf = (stateFolder: string): string => join(stateFolder, "shards");

/** The number of shards to start with: as told, or as the state was made. `isNew`: nothing was made yet. */
export async function chooseShards(
  stateFolder: string,
  configured: string | undefined,
  isNew: boolean,
): Promise<string> {
  return configured ?? (await readShards(stateFolder)) ?? (isNew ? NEW_STATE_SHARDS : SHARDS_BEFORE_FILE);
}

/** For a new state, and for one that has answered: then they are the right ones, and fixed for good. */
export async function storeShards(stateFolder: string, shards: string): Promise<void> {
  if ((await readShards(stateFolder)) !== shards) await writePrivate(fileOf(stateFolder), `${shards}\n`);
}

async function readShards(stateFolder: string): Promise<string | undefined> {
  const path = fileOf(stateFolder);
  let kept: string;
  try {
    kept = (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  if (!/^\d+$/.test(kept)) throw new Error(`${path} does not hold a number of shards`);
  return kept;
}
