import { readConfig, writeConfig, isContextName, type Config } from "../connection/config-file.ts";
import { usageError } from "../framework/command-error.ts";
import type { Io } from "../framework/io.ts";
import { escapeControls } from "../output/escape.ts";

interface Saved {
  /** Undefined: it was not saved. */
  name: string | undefined;
  isCurrent: boolean;
  note: string | undefined;
}

/** @throws a usage error before the server starts, if the file of contexts can't be used */
export async function checkContextName(io: Io, name: string): Promise<void> {
  if (!isContextName(name))
    throw usageError("--save-as must have letters, digits, dots, dashes and underscores, at most 64");
  await readConfig(io);
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

/** Forgets the context of a temporary coordinator, unless somebody has changed it meanwhile. */
export async function forgetContext(io: Io, name: string, key: string): Promise<void> {
  const config = await readConfig(io);
  if (config.contexts[name]?.key !== key) return;
  const { [name]: _, ...contexts } = config.contexts;
  const rest: Config = { current: config.current === name ? null : config.current, contexts };
  await writeConfig(io, rest);
}
