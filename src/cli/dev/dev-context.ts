import {
  readConfig,
  writeConfig,
  isContextName,
  type Config,
  type SavedContext,
} from "../connection/config-file.ts";
import { usageError } from "../framework/command-error.ts";
import type { Io } from "../framework/io.ts";
import { escapeControls } from "../../common/text/escape.ts";

interface Saved {
  /** Undefined: it was not saved. */
  name: string | undefined;
  isCurrent: boolean;
  note: string | undefined;
}

/**
 * Returns the context that has this name now.
 *
 * @throws a usage error before the server starts, if the file of contexts can't be used
 */
export async function findContext(io: Io, name: string): Promise<SavedContext | undefined> {
  if (!isContextName(name))
    throw usageError("--save-as must have letters, digits, dots, dashes and underscores, at most 64");
  const { contexts } = await readConfig(io);
  return Object.hasOwn(contexts, name) ? contexts[name] : undefined;
}

/**
 * Saves the operator key as a context. One that belongs to another URL is only replaced if a person says so.
 * It becomes the current one only if there is none, so that it does not take the place of a deployment.
 */
export async function saveContext(
  io: Io,
  name: string,
  target: { url: string; key: string },
): Promise<Saved> {
  const config = await readConfig(io);
  const before = Object.hasOwn(config.contexts, name) ? config.contexts[name] : undefined;
  const isOther = before !== undefined && before.url !== target.url;
  if (isOther && !(await mayReplace(io, name, before.url)))
    return {
      name: undefined,
      isCurrent: false,
      note: `The context ${name} belongs to ${before.url} and was kept: give another name with --save-as.`,
    };
  const current = config.current ?? name;
  await writeConfig(io, { current, contexts: { ...config.contexts, [name]: target } });
  return { name, isCurrent: current === name, note: undefined };
}

async function mayReplace({ prompt }: Io, name: string, url: string): Promise<boolean> {
  if (prompt === undefined) return false;
  const question = `The context ${name} belongs to ${escapeControls(url)}. Type ${name} to replace it: `;
  return (await prompt.ask(question)).trim() === name;
}

/**
 * Forgets the context of a temporary coordinator, unless somebody has changed it meanwhile. The one that it
 * has replaced comes back: it may have the key of a state folder, or of a server on the same port.
 */
export async function forgetContext(
  io: Io,
  name: string,
  key: string,
  replaced: SavedContext | undefined,
): Promise<void> {
  const config = await readConfig(io);
  if (config.contexts[name]?.key !== key) return;
  if (replaced !== undefined)
    return void (await writeConfig(io, { ...config, contexts: { ...config.contexts, [name]: replaced } }));
  const { [name]: _, ...contexts } = config.contexts;
  const rest: Config = { current: config.current === name ? null : config.current, contexts };
  await writeConfig(io, rest);
}
