import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { shardsOf } from "../src/core/placement.ts";
import { writeDurably } from "./durable-file.ts";

/** On one machine all objects share one thread, so more shards add no capacity and make smaller batches. */
const NEW_STATE_SHARDS = "1";

const fileOf = (stateFolder: string): string => join(stateFolder, "shards");

/**
 * Returns the number of shards to start with: the one that the state was made with, or for a new state the
 * configured one. `isNew` means that the state is empty. Every other state has the file, because the first
 * start writes it before anything else.
 */
export async function chooseShards(
  stateFolder: string,
  configured: string | undefined,
  isNew: boolean,
): Promise<string> {
  const shards = (await readShards(stateFolder)) ?? configured ?? (isNew ? NEW_STATE_SHARDS : undefined);
  if (shards !== undefined) return shards;
  throw new Error(
    `${fileOf(stateFolder)} is missing; ` +
      "set LEASEHOLD_SHARDS to the number of shards that the state was made with",
  );
}

/** Call this for a new state, or for one without the file that has started. */
export async function storeShards(stateFolder: string, shards: string): Promise<void> {
  if ((await readShards(stateFolder)) !== shards) await writeDurably(fileOf(stateFolder), `${shards}\n`);
}

/**
 * Says what is wrong with LEASEHOLD_SHARDS for a deployment that runs: it must not ask for more shards than
 * the deployment has. It may ask for fewer, because the deployment may have grown. Undefined: nothing.
 */
export function shardsFault(configured: string | undefined, placement: string): string | undefined {
  const shards = shardsOf(placement);
  if (configured === undefined || Number(configured) <= shards) return undefined;
  return (
    `LEASEHOLD_SHARDS is ${configured}, but the deployment has ${shards} shards; leave out the variable, ` +
    "and change the number with `leasehold shards grow`"
  );
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
  if (!/^\d+$/.test(kept))
    throw new Error(`${path} must contain the number of shards that the state was made with`);
  return kept;
}
