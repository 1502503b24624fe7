/** What a state folder says of itself: its program, its format, its number of shards, and its secret. */
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "./durable-file.ts";

/** The programs that have a state. */
type Program = "npm start" | "npm run standalone";

/** What is fixed when a folder is made. */
interface State {
  format: number;
  program: Program;
  shards: string;
}

/** Raise it if the files of a folder change, or what a host stores. The tables of objects have numbers. */
export const FORMAT = 1;

/** On one machine all objects share one thread, so more shards add no capacity and make smaller batches. */
const NEW_SHARDS = "1";

const OTHER_FOLDER = "set LEASEHOLD_STATE to another folder";

const fileOf = (folder: string): string => join(folder, "state.json");

/**
 * Returns what a locked folder has, or makes it for a new folder, which gets `shards`. Throws an `Error` with
 * one line if the state is of another format or program, or damaged.
 */
export async function openState(
  folder: string,
  program: Program,
  shards = NEW_SHARDS,
): Promise<{ shards: string; signingSecret: string }> {
  const state = (await readState(folder)) ?? (await makeState(folder, program, shards));
  if (state.program !== program)
    throw new Error(`${folder} is a folder of \`${state.program}\`; ${OTHER_FOLDER}`);
  return { shards: state.shards, signingSecret: await readOrMakeSecret(folder) };
}

/** The file is written first, so a start that fails later leaves a folder that can be used. */
async function makeState(folder: string, program: Program, shards: string): Promise<State> {
  const state = { format: FORMAT, program, shards };
  await writeDurably(fileOf(folder), `${JSON.stringify(state)}\n`);
  return state;
}

/** Returns undefined for a folder without a state. Throws if the state is of another format, or damaged. */
export async function readState(folder: string): Promise<State | undefined> {
  const path = fileOf(folder);
  const text = await readIfThere(path);
  if (text === undefined) return refuseRest(folder);
  let state: Partial<State & { version: unknown }> | null = null;
  try {
    state = JSON.parse(text) as Partial<State> | null;
  } catch {
    // It is refused below.
  }
  const { version, format, program, shards } = state ?? {};
  if (version !== undefined)
    throw new Error(
      `${folder} has a state of a version before 0.2.0 (${JSON.stringify(version)}), which this one cannot ` +
        "take over: with that version, write all claims to a file with `leasehold backup create`, and " +
        `restore it into a new folder; for that, ${OTHER_FOLDER}`,
    );
  if (typeof format === "number" && format !== FORMAT)
    throw new Error(
      `${folder} has a state of format ${format}, and this Leasehold knows format ${FORMAT}: start the ` +
        `Leasehold that made the state, or ${OTHER_FOLDER}`,
    );
  const isKnown = program === "npm start" || program === "npm run standalone";
  if (typeof format !== "number" || !isKnown || typeof shards !== "string" || !/^\d+$/.test(shards))
    throw new Error(`${path} is damaged; restore the file, or ${OTHER_FOLDER}`);
  return { format, program, shards };
}

/** Throws if a folder without the file has something else of a state. */
async function refuseRest(folder: string): Promise<undefined> {
  for (const name of ["signing-secret", "storage", "databases"])
    if (await exists(join(folder, name)))
      throw new Error(`${folder} has a state without state.json; restore the file, or ${OTHER_FOLDER}`);
}

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
