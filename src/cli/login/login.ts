import { readConfig, isContextName, writeConfig } from "../connection/config-file.ts";
import { keyFactsOf, readsEverything, type KeyFacts } from "../connection/key-facts.ts";
import { isLoopback } from "../connection/loopback.ts";
import { send } from "../connection/send.ts";
import { checkKey, checkUrl } from "../connection/target.ts";
import { CommandError, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import type { Result } from "../output/result.ts";

interface LoginOptions {
  name?: string;
}

export async function login(context: Context, options: LoginOptions): Promise<Result> {
  const { io } = context;
  if (context.options.context !== undefined) throw usageError("login takes --name, not --context");
  const given = context.options.url ?? (io.env["LEASEHOLD_URL"] || undefined);
  if (given === undefined) throw usageError("--url is required");
  const url = checkUrl(given);
  const name = options.name ?? new URL(url).host.replaceAll(/[^\w.-]/g, "-");
  if (!isContextName(name))
    throw usageError("--name must have letters, digits, dots, dashes and underscores, at most 64");
  // A file that cannot be used is found before the key is asked for.
  const config = await readConfig(io);
  const key = checkKey(await readKey(context, url));
  const facts = keyFactsOf(key);
  if (facts === undefined) throw usageError("this is not a key of Leasehold, which starts with lhk_");
  if (facts.role === "scraper")
    throw usageError("a key of the role scraper can only read /metrics, so no command can use it");
  if (facts.role === "bridge")
    throw usageError(
      "a key of the role bridge is only for `leasehold grpc`, which reads it from LEASEHOLD_KEY",
    );
  await checkAtDeployment(context, url, key);
  const contexts = { ...config.contexts, [name]: { url, key } };
  const file = await writeConfig(io, { current: name, contexts });
  const holder = holderOf(facts);
  const expiry = durationText(facts.expiresAtMs - io.now());
  return {
    document: { context: name, url, role: facts.role, cell: facts.cell, key_id: facts.id, file },
    text: () => `Saved the context ${name}: ${url} with a key of ${holder}, which expires in ${expiry}.`,
    notes: url.startsWith("http:") && !isLoopback(url) ? [PLAIN] : [],
    nextSteps: readsEverything(facts) ? ["leasehold status"] : ["leasehold lookup NAME --type TYPE"],
  };
}

const PLAIN = "The URL has no TLS, so everybody between here and there can read the key. Use https.";

const holderOf = ({ role, cell }: KeyFacts): string => (cell === null ? `the role ${role}` : `cell ${cell}`);

async function readKey({ io }: Context, url: string): Promise<string> {
  const key = io.prompt === undefined ? await io.readInput() : await io.prompt.askHidden(`Key for ${url}: `);
  if (key.trim() === "") throw usageError("no key was given: type it, or pipe it in");
  return key;
}

/** Every role may read the limits. */
async function checkAtDeployment({ io }: Context, url: string, key: string): Promise<void> {
  const { status } = await send(io, { url, key }, { method: "GET", path: "/v1/limits" });
  if (status === 200) return;
  if (status === 401 || status === 403)
    throw new CommandError(
      `${url} does not accept this key: it belongs to another deployment, has expired, or was revoked`,
      exitCodes.notAllowed,
    );
  throw new CommandError(
    `${url} answered with HTTP ${status}, so the key was not saved`,
    exitCodes.unavailable,
  );
}
