import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { messageOf, usageError } from "../framework/command-error.ts";
import type { Io } from "../framework/io.ts";
import { shellWord } from "../../common/text/shell-word.ts";

/** A deployment with the key to it. */
export interface SavedContext {
  url: string;
  key: string;
}

export interface Config {
  /** The context that commands use unless they are told otherwise. */
  current: string | null;
  contexts: Readonly<Record<string, SavedContext>>;
}

/** More than thousands of contexts need. */
const MAX_BYTES = 1_000_000;

const CONTEXT_NAME = /^[\w][\w.-]{0,63}$/;

export const isContextName = (name: string): boolean => CONTEXT_NAME.test(name);

function configFileOf({ env }: Pick<Io, "env">): string {
  const folder = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
  return join(folder, "leasehold", "config.json");
}

/** @throws a usage error if others can read the file, or if it is no such file */
export async function readConfig(io: Pick<Io, "env">): Promise<Config> {
  const file = configFileOf(io);
  const found = await stat(file).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw usageError(`${file} cannot be read: ${messageOf(error)}`);
  });
  if (found === undefined) return { current: null, contexts: {} };
  // Windows has no such modes.
  if (process.platform !== "win32" && (found.mode & 0o077) !== 0)
    throw usageError(
      `${file} contains keys, and other users of this machine can read or change it. ` +
        `Mend it with: chmod 600 ${shellWord(file)}`,
    );
  if (found.size > MAX_BYTES) throw usageError(`${file} is larger than ${MAX_BYTES} bytes`);
  return configOf(file, await readFile(file, "utf8"));
}

function configOf(file: string, text: string): Config {
  try {
    const { current = null, contexts = {} } = JSON.parse(text) as Partial<Config>;
    if (current !== null && typeof current !== "string") throw new Error("`current` must be a name or null");
    const entries = Object.entries(contexts);
    for (const [name, saved] of entries) checkContext(name, saved);
    return { current, contexts: Object.fromEntries(entries) };
  } catch (error) {
    throw usageError(`${file} is not a file of contexts: ${messageOf(error)}`);
  }
}

function checkContext(name: string, saved: unknown): void {
  const { url, key } = (saved ?? {}) as Partial<SavedContext>;
  if (!isContextName(name)) throw new Error(`\`contexts\` has the name ${JSON.stringify(name)}`);
  if (typeof url !== "string") throw new Error(`\`contexts.${name}.url\` must be a URL`);
  if (typeof key !== "string") throw new Error(`\`contexts.${name}.key\` must be a key`);
}

/** Replaces the file as a whole, so that another process never reads half of it. */
export async function writeConfig(io: Pick<Io, "env">, config: Config): Promise<string> {
  const file = configFileOf(io);
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // A folder that existed before keeps its mode.
  await chmod(folder, 0o700);
  const fresh = `${file}.${process.pid}`;
  try {
    await writeFile(fresh, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(fresh, file);
  } finally {
    await rm(fresh, { force: true });
  }
  return file;
}
