import type { AnyD1Database } from "drizzle-orm/d1";
import { readConfig, type Config } from "./config.ts";
import type { LocationHint } from "./location-hints.ts";
import type { DirectoryCalls, LedgerCalls, ShardCalls } from "./objects/calls.ts";

/** A Durable Object namespace, as far as it is used here: so that something else may stand in for it where there is no such platform. */
export interface Namespace<Calls> {
  getByName(name: string, options?: { locationHint?: LocationHint }): Calls;
}

/** Bindings, variables and secrets, as `wrangler.toml` declares them. Every limit has a variable besides (core/limits.ts). */
export interface Env {
  CELL_LEDGER: Namespace<LedgerCalls>;
  CLAIM_SHARD: Namespace<ShardCalls>;
  DIRECTORY: Namespace<DirectoryCalls>;
  DB: AnyD1Database;
  /** Signs keys and page tokens. At least 32 characters. */
  LEASEHOLD_SIGNING_SECRET?: string;
  /** Still accepted while it is being rotated out. */
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
  /** Fixed for good at the first use of the deployment. */
  LEASEHOLD_SHARDS?: string;
  /** Where the shards are made, at their first use: a Durable Object location hint. */
  LEASEHOLD_SHARD_LOCATION_HINT?: string;
  /** `all` or `errors`: which requests get a line in the log. */
  LEASEHOLD_REQUEST_LOG?: string;
}

const configs = new WeakMap<Env, Config>();

/** Parses the variables once per isolate and environment. Throws a sentence that names the variable which is wrong. */
export function configOf(env: Env): Config {
  const known = configs.get(env);
  if (known !== undefined) return known;
  const config = readConfig(env as unknown as Record<string, unknown>);
  configs.set(env, config);
  return config;
}
