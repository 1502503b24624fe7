import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder, writeDurably } from "../../scripts/durable-file.ts";
import { markUse, UntrustedCopy } from "./use-mark.ts";

/** The version of the folder's layout. A folder of a newer version is refused. */
const VERSION = 1;

/** On one machine all objects share one thread, so more shards add no capacity and make smaller batches. */
const NEW_SHARDS = "1";

const OTHER_FOLDER = "set LEASEHOLD_STATE to another folder";

/** What is fixed when a folder is made. */
interface State {
  version: number;
  shards: string;
}

export interface OpenedFolder {
  /** The folder of the databases. */
  databases: string;
  /** The number of shards with which the folder was made. */
  shards: string;
  signingSecret: string;
}

const stateFile = (folder: string): string => join(folder, "state.json");
const secretFile = (folder: string): string => join(folder, "signing-secret");

export interface OpenOptions {
  /** The number of shards that a new folder gets. Undefined: one. */
  shards: string | undefined;
  /** The folder may be a copy, because nothing wrote to the original while it was copied. */
  trustCopy?: boolean | undefined;
}

/**
 * Opens a locked folder, or makes it what `npm run standalone` needs, and marks it as used. Throws an `Error`
 * with one line if the folder is of another version, of `npm start`, or a copy of one that was in use.
 */
export async function openFolder(
  folder: string,
  { shards, trustCopy = false }: OpenOptions,
): Promise<OpenedFolder> {
  const databases = join(folder, "databases");
  const state = (await readState(folder)) ?? (await makeState(folder, shards));
  await makeFolder(databases);
  await markUse(databases, trustCopy).catch((error: unknown) => {
    throw error instanceof UntrustedCopy ? new Error(refusedCopy(folder)) : error;
  });
  return { databases, shards: state.shards, signingSecret: await readOrMakeSecret(folder) };
}

const refusedCopy = (folder: string): string =>
  `${folder} is a copy of the state of a server that was running or was killed, so its files may be of ` +
  "different moments; copy the original again with --backup, or add --trust-copy if nothing wrote to the " +
  "original while it was copied";

async function readState(folder: string): Promise<State | undefined> {
  const path = stateFile(folder);
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  let state: Partial<State> | null = null;
  try {
    state = JSON.parse(text) as Partial<State> | null;
  } catch {
    // It is refused below.
  }
  const { version, shards } = state ?? {};
  if (typeof version === "number" && version > VERSION)
    throw new Error(`${folder} was made by a newer version of Leasehold; use that one, or ${OTHER_FOLDER}`);
  if (version !== VERSION || typeof shards !== "string" || !/^\d+$/.test(shards))
    throw new Error(`${path} is damaged; restore the file, or ${OTHER_FOLDER}`);
  return { version, shards };
}

/** The state is written first, so a start that fails later leaves a folder that can be used. */
async function makeState(folder: string, shards: string | undefined): Promise<State> {
  for (const name of ["storage", "shards", "signing-secret", "databases"])
    if (await exists(join(folder, name)))
      throw new Error(
        `${folder} is not a folder of the standalone server (${name} without state.json); ${OTHER_FOLDER}`,
      );
  const state = { version: VERSION, shards: shards ?? NEW_SHARDS };
  await writeDurably(stateFile(folder), `${JSON.stringify(state)}\n`);
  return state;
}

/** Reads the folder's signing secret, or makes it at the first start. All keys depend on it. */
async function readOrMakeSecret(folder: string): Promise<string> {
  const path = secretFile(folder);
  const text = await readIfThere(path);
  if (text === undefined) {
    const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
    await writeDurably(path, `${secret}\n`);
    return secret;
  }
  // A new secret would make all keys invalid, and an empty file says that the disk lost data.
  if (text.trim() === "") throw new Error(`${path} is empty; restore the file, or ${OTHER_FOLDER}`);
  return text.trim();
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
