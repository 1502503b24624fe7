import type { Io } from "../framework/io.ts";
import { usageError } from "../framework/command-error.ts";
import { readConfig, type Config, type SavedContext } from "./config-file.ts";

/** The deployment that a command talks to. */
export interface Target {
  url: string;
  key: string;
  /** Where both come from, for `doctor`. */
  origin: string;
}

export interface TargetOptions {
  url?: string | undefined;
  context?: string | undefined;
}

/**
 * Finds the URL and the key. The key of a context is only ever sent to the URL of this context.
 *
 * @throws a usage error that says what is missing
 */
export async function findTarget(io: Pick<Io, "env">, options: TargetOptions): Promise<Target> {
  if (options.context !== undefined) {
    if (options.url !== undefined) throw usageError("give --url or --context, not both");
    const { url, key } = contextOf(await readConfig(io), options.context);
    return { url, key, origin: `context ${options.context}` };
  }
  const url = options.url ?? (io.env["LEASEHOLD_URL"] || undefined);
  const key = io.env["LEASEHOLD_KEY"] || undefined;
  if (url !== undefined && key !== undefined)
    return { url: checkUrl(url), key: checkKey(key), origin: "LEASEHOLD_KEY" };
  const config = await readConfig(io);
  return url === undefined ? ofCurrent(config, key) : ofUrl(config, checkUrl(url));
}

/**
 * Finds the URL alone, for what needs no key.
 *
 * @throws a usage error that says what is missing
 */
export async function findUrl(io: Pick<Io, "env">, options: TargetOptions): Promise<string> {
  const url = options.url ?? (io.env["LEASEHOLD_URL"] || undefined);
  if (options.context === undefined && url !== undefined) return checkUrl(url);
  return (await findTarget(io, options)).url;
}

/**
 * Finds the URL, and the key for it if there is one.
 *
 * @throws a usage error if there is no URL, or if the file of contexts cannot be used
 */
export async function findUrlAndKey(
  io: Pick<Io, "env">,
  options: TargetOptions,
): Promise<{ url: string; key?: string }> {
  const given = options.url ?? (io.env["LEASEHOLD_URL"] || undefined);
  const hasKey = Boolean(io.env["LEASEHOLD_KEY"]);
  if (options.context !== undefined || given === undefined || hasKey) return findTarget(io, options);
  const url = checkUrl(given);
  const [, saved] = savedOf(await readConfig(io), url) ?? [];
  return saved === undefined ? { url } : { url, key: checkKey(saved.key) };
}

function contextOf({ contexts }: Config, name: string): SavedContext {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  // A person may have changed the file.
  if (found !== undefined) return { url: checkUrl(found.url), key: checkKey(found.key) };
  const known = Object.keys(contexts).join(", ") || "none";
  throw usageError(`there is no context ${JSON.stringify(name)}; known: ${known}`, ["leasehold context ls"]);
}

function ofCurrent(config: Config, key: string | undefined): Target {
  if (config.current === null)
    throw usageError(
      key === undefined
        ? "there is no URL of a deployment and no key: set LEASEHOLD_URL and LEASEHOLD_KEY, or log in"
        : "there is no URL of a deployment: set LEASEHOLD_URL, give --url, or log in",
      ["leasehold login --url URL"],
    );
  const saved = contextOf(config, config.current);
  return {
    url: saved.url,
    key: key === undefined ? saved.key : checkKey(key),
    origin: key === undefined ? `context ${config.current}` : "LEASEHOLD_KEY",
  };
}

/** The context for a URL, with its name. */
function savedOf({ contexts, current }: Config, url: string): [string, SavedContext] | undefined {
  const all = Object.entries(contexts).filter(([, saved]) => originOf(saved.url) === originOf(url));
  return all.find(([name]) => name === current) ?? all[0];
}

function ofUrl(config: Config, url: string): Target {
  const [name, saved] = savedOf(config, url) ?? [];
  if (name === undefined || saved === undefined)
    throw usageError(`there is no key for ${url}: set LEASEHOLD_KEY, or log in`, [
      `leasehold login --url ${url}`,
    ]);
  return { url, key: checkKey(saved.key), origin: `context ${name}` };
}

/** @throws a usage error unless it is an http or https URL without a path */
export function checkUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isOrigin =
    parsed !== undefined &&
    /^https?:$/.test(parsed.protocol) &&
    `${parsed.pathname}${parsed.search}${parsed.hash}${parsed.username}${parsed.password}` === "/";
  if (!isOrigin) throw usageError("the URL of the deployment must be an http or https URL without a path");
  return parsed.origin;
}

/** Never shows the key. */
export function checkKey(key: string): string {
  const trimmed = key.trim();
  if (!/^[\x21-\x7e]+$/.test(trimmed)) throw usageError("the key must be one line of visible ASCII");
  return trimmed;
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);
