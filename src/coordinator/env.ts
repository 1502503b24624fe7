import type { AnyD1Database } from "drizzle-orm/d1";
import { readConfig, type Config } from "./config.ts";
import type { LocationHint } from "./location-hints.ts";
import type { AnalyticsDataset } from "./api/trace.ts";
import type { DirectoryCalls, LedgerCalls, ShardCalls } from "./kernel/methods.ts";

/**
 * The part of a Durable Object namespace that is used here. The coordinator for tests implements it in Node.
 */
export interface Namespace<Calls> {
  getByName(name: string, options?: { locationHint?: LocationHint }): Calls;
}

/**
 * Bindings, variables and secrets, as `wrangler.toml` declares them. In addition, every limit has a variable
 * (`common/limits.ts`).
 */
export interface Env {
  CELL_LEDGER: Namespace<LedgerCalls>;
  CLAIM_SHARD: Namespace<ShardCalls>;
  DIRECTORY: Namespace<DirectoryCalls>;
  DB: AnyD1Database;
  /** Without it, requests are not counted. */
  ANALYTICS?: AnalyticsDataset;
  /** Signs keys and page tokens. It has at least 32 characters. */
  LEASEHOLD_SIGNING_SECRET?: string;
  /** Still accepted while the signing secret is rotated. */
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
  /** The number of shards with which a new deployment starts. Later it has no effect. */
  LEASEHOLD_SHARDS?: string;
  /** The Durable Object location hint with which the shards are created, at their first use. */
  LEASEHOLD_SHARD_LOCATION_HINT?: string;
  /** `all`, `errors`, or the share of requests that are logged. */
  LEASEHOLD_REQUEST_LOG?: string;
  /** The URL of an OpenTelemetry collector. Without it, nothing is traced. */
  LEASEHOLD_OTLP_ENDPOINT?: string;
  /** Headers for the collector, such as its key. */
  LEASEHOLD_OTLP_HEADERS?: string;
  /** The share of requests that are traced. */
  LEASEHOLD_TRACE_SHARE?: string;
  /** The domain of the team whose users the console accepts, such as `acme.cloudflareaccess.com`. */
  LEASEHOLD_ACCESS_TEAM_DOMAIN?: string;
  /** The audience tag of the Access application. */
  LEASEHOLD_ACCESS_AUDIENCE?: string;
  /** Email addresses, separated by commas. `*@example.com` stands for all of a domain. */
  LEASEHOLD_ACCESS_OPERATORS?: string;
  LEASEHOLD_ACCESS_VIEWERS?: string;
  /** `public` or `any`: the hosts to which webhooks may go. */
  LEASEHOLD_WEBHOOK_HOSTS?: string;
}

const configs = new WeakMap<Env, Config>();

/**
 * Parses the variables, once per isolate and environment. Throws an Error whose message names the wrong
 * variable.
 */
export function configOf(env: Env): Config {
  const known = configs.get(env);
  if (known !== undefined) return known;
  const config = readConfig(env as unknown as Record<string, unknown>);
  configs.set(env, config);
  return config;
}
