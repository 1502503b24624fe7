import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writePrivate } from "./private-file.ts";

/** On one machine all objects share one thread: more shards spread nothing there, and make smaller batches. */
const FIRST = "1";
/** What a state was made with before it said so itself. */
const UNSAID = "4";

const fileOf = (stateFolder: string): string => join(stateFolder, "shards");

/** The number of shards to start with: as told, or as the state was made. `isNew`: nothing was made yet. */
export async function shardsOf(stateFolder: string, told: string | undefined, isNew: boolean): Promise<string> {
  return told ?? (await keptShards(stateFolder)) ?? (isNew ? FIRST : UNSAID);
}

/** Once they are known to be the right ones: they are fixed for good. */
export async function keepShards(stateFolder: string, shards: string): Promise<void> {
  if ((await keptShards(stateFolder)) !== shards) await writePrivate(fileOf(stateFolder), `${shards}\n`);
}

async function keptShards(stateFolder: string): Promise<string | undefined> {
  try {
    return (await readFile(fileOf(stateFolder), "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
