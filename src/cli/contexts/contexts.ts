import { readConfig, writeConfig, type Config, type SavedContext } from "../connection/config-file.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { listResult, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm } from "../safety/confirm.ts";

export async function listContexts({ io }: Context): Promise<Result> {
  const { current, contexts } = await readConfig(io);
  const items = Object.entries(contexts).map(([name, { url, key }]) => {
    const facts = keyFactsOf(key);
    return {
      name,
      url,
      current: name === current,
      role: facts?.role ?? null,
      key_id: facts?.id ?? null,
      expires_at: facts === undefined ? null : new Date(facts.expiresAtMs).toISOString(),
    };
  });
  return listResult({
    name: "contexts",
    items,
    isCut: false,
    columns: [
      { title: "", value: ({ current: isCurrent }) => (isCurrent ? "*" : " ") },
      { title: "NAME", value: ({ name }) => name },
      { title: "URL", value: ({ url }) => url },
      { title: "ROLE", value: ({ role }) => role },
      { title: "KEY EXPIRES IN", value: ({ expires_at: at }) => expiryText(at, io.now()) },
    ],
    empty: "There are no contexts.",
    nextSteps: items.length === 0 ? ["leasehold login --url URL"] : [],
  });
}

function expiryText(expiresAt: string | null, nowMs: number): string | null {
  if (expiresAt === null) return null;
  const restMs = Date.parse(expiresAt) - nowMs;
  return restMs <= 0 ? "expired" : durationText(restMs);
}

export async function useContext({ io }: Context, name: string): Promise<Result> {
  const config = await readConfig(io);
  const { url } = savedOf(config, name);
  await writeConfig(io, { ...config, current: name });
  return {
    document: { current: name, url, previous: config.current },
    text: () => `Commands now use ${name}: ${url}`,
    nextSteps: config.current === null ? [] : [commandLine("context", "use", config.current)],
  };
}

export async function removeContext(
  context: Context,
  name: string,
  options: { yes?: boolean },
): Promise<Result> {
  const config = await readConfig(context.io);
  const { url } = savedOf(config, name);
  await confirm(context, options, { name, effect: `This forgets the key for ${url}.` });
  const { [name]: _, ...contexts } = config.contexts;
  await writeConfig(context.io, { current: config.current === name ? null : config.current, contexts });
  return {
    document: { removed: name, url },
    text: () => `Forgot the context ${name}. Its key is still valid: revoke it if nobody needs it.`,
    nextSteps: [commandLine("login", "--url", url, "--name", name)],
  };
}

function savedOf({ contexts }: Config, name: string): SavedContext {
  const saved = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (saved !== undefined) return saved;
  throw new CommandError(`there is no context ${JSON.stringify(name)}`, exitCodes.notFound, [
    "leasehold context ls",
  ]);
}
