/** What a state folder says of itself: its program, its version, its number of shards, and its secret. */
import { createHash } from "node:crypto";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { directorySchema } from "../src/core/directory/schema.ts";
import { ledgerSchema } from "../src/core/ledger/schema.ts";
import { META_TABLE } from "../src/core/meta.ts";
import { shardSchema } from "../src/core/shard/schema.ts";
import { migrations } from "../src/node-host/migrations.ts";
import { writeDurably } from "./durable-file.ts";

/** The programs that have a state. */
type Program = "npm start" | "npm run standalone";

/** What is fixed when a folder is made. */
interface State {
  version: string;
  program: Program;
  shards: string;
}

/** Raise it if the files of the folder, or the meaning of what is stored, change. Tables count anyway. */
const FORMATS: Record<Program, number> = { "npm start": 2, "npm run standalone": 3 };

const tables = [META_TABLE, directorySchema, ledgerSchema, shardSchema, migrations];

/** Hashes the tables of a state without white space: a reformatted statement makes the same table. */
export const hashOf = (schemas: unknown): string =>
  createHash("sha256")
    .update(
      JSON.stringify(schemas, (_, value: unknown) =>
        typeof value === "string" ? value.replaceAll(/\s/g, "") : value,
      ),
    )
    .digest("hex")
    .slice(0, 8);

/**
 * The version of a program's state. The program refuses a state of any other version, because it would find
 * other tables than it expects.
 */
export const stateVersion = (program: Program): string => `${FORMATS[program]}.${hashOf(tables)}`;

/**
 * The last version of `npm run standalone` with a file for each object. The first start copies them into one
 * file, and then the tables change as they do at any start.
 */
export const OLD_LAYOUT = "2.7870a7a1";

/** On one machine all objects share one thread, so more shards add no capacity and make smaller batches. */
const NEW_SHARDS = "1";

const OTHER_FOLDER = "set LEASEHOLD_STATE to another folder";

const fileOf = (folder: string): string => join(folder, "state.json");

/**
 * Returns what a locked folder has, or makes it for a new folder, which gets `shards`. Throws an `Error` with
 * one line if the state is of another version or program, or damaged.
 */
export async function openState(
  folder: string,
  program: Program,
  shards = NEW_SHARDS,
): Promise<{ state: State; shards: string; signingSecret: string }> {
  const state = (await readState(folder, program)) ?? (await makeState(folder, program, shards));
  if (state.program !== program)
    throw new Error(`${folder} is a folder of \`${state.program}\`; ${OTHER_FOLDER}`);
  return { state, shards: state.shards, signingSecret: await readOrMakeSecret(folder) };
}

/** The file is written first, so a start that fails later leaves a folder that can be used. */
async function makeState(folder: string, program: Program, shards: string): Promise<State> {
  return writeState(folder, { version: stateVersion(program), program, shards });
}

export async function writeState(folder: string, state: State): Promise<State> {
  await writeDurably(fileOf(folder), `${JSON.stringify(state)}\n`);
  return state;
}

/** Returns undefined for a folder without a state. Throws if the state is of another version, or damaged. */
export async function readState(folder: string, asking: Program = "npm start"): Promise<State | undefined> {
  const path = fileOf(folder);
  const text = await readIfThere(path);
  if (text === undefined) return refuseRest(folder, asking);
  let state: Partial<State> | null = null;
  try {
    state = JSON.parse(text) as Partial<State> | null;
  } catch {
    // It is refused below.
  }
  const { version, program, shards } = state ?? {};
  const isKnown = program === "npm start" || program === "npm run standalone";
  const needed = stateVersion(isKnown ? program : asking);
  const isOld = program === "npm run standalone" && version === OLD_LAYOUT;
  if (version !== undefined && version !== needed && !isOld)
    throw otherVersion(`${folder} has a state of version ${version}`, needed);
  if (version === undefined || !isKnown || typeof shards !== "string" || !/^\d+$/.test(shards))
    throw new Error(`${path} is damaged; restore the file, or ${OTHER_FOLDER}`);
  return { version, program, shards };
}

/** Throws if a folder without the file has something else of a state. */
async function refuseRest(folder: string, asking: Program): Promise<undefined> {
  for (const name of ["signing-secret", "storage", "databases"])
    if (await exists(join(folder, name)))
      throw otherVersion(
        `${folder} has no state.json, so its state is older, or the file was lost`,
        stateVersion(asking),
      );
}

const otherVersion = (found: string, needed: string): Error =>
  new Error(
    `${found}; this Leasehold needs version ${needed}: start the Leasehold that made the state, ` +
      `or ${OTHER_FOLDER}`,
  );

/** Reads the folder's signing secret, or makes it at the first start. All keys depend on it. */
async function readOrMakeSecret(folder: string): Promise<string> {
  const path = join(folder, "signing-secret");
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
    if (/^(ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
