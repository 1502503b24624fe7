import { MAX_SHARDS, placementOf, type Placement } from "./core/placement.ts";
import { readLimits, type Limits } from "./core/limits.ts";
import { locationHints } from "./location-hints.ts";
import type { CellLedger } from "./objects/cell-ledger.ts";
import type { ClaimShard } from "./objects/claim-shard.ts";
import type { Directory } from "./objects/directory.ts";

/** Bindings, variables and secrets, as `wrangler.toml` declares them. Every limit has a variable besides (core/limits.ts). */
export interface Env {
  CELL_LEDGER: DurableObjectNamespace<CellLedger>;
  CLAIM_SHARD: DurableObjectNamespace<ClaimShard>;
  DIRECTORY: DurableObjectNamespace<Directory>;
  DB: D1Database;
  /** Signs keys and page tokens. At least 32 characters. */
  LEASEHOLD_SIGNING_SECRET?: string;
  /** Still accepted while it is being rotated out. */
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
  /** Fixed for good at the first use of the deployment. */
  LEASEHOLD_SHARDS?: string;
  /** Where the shards are made, at their first use: a Durable Object location hint. */
  LEASEHOLD_SHARD_LOCATION_HINT?: string;
}

export interface Config {
  shards: number;
  placement: Placement;
  limits: Limits;
  shardLocationHint: DurableObjectLocationHint | undefined;
}

const DEFAULT_SHARDS = 16;

function locationHintOf(given: string | undefined): DurableObjectLocationHint | undefined {
  if (given === undefined || given === "") return undefined;
  const hint = locationHints.find((known) => known === given);
  if (hint === undefined) throw new Error(`LEASEHOLD_SHARD_LOCATION_HINT must be one of ${locationHints.join(", ")}`);
  return hint;
}

const configs = new WeakMap<Env, Config>();

/** Parses the variables once per isolate and environment. Throws a sentence that names the variable which is wrong. */
export function configOf(env: Env): Config {
  const known = configs.get(env);
  if (known !== undefined) return known;
  const given = env.LEASEHOLD_SHARDS ?? String(DEFAULT_SHARDS);
  const shards = Number(given);
  if (!/^\d+$/.test(given) || shards < 1 || shards > MAX_SHARDS) throw new Error(`LEASEHOLD_SHARDS must be a whole number from 1 to ${MAX_SHARDS}`);
  const config: Config = {
    shards,
    placement: placementOf(shards),
    limits: readLimits(env as unknown as Record<string, unknown>),
    shardLocationHint: locationHintOf(env.LEASEHOLD_SHARD_LOCATION_HINT),
  };
  configs.set(env, config);
  return config;
}
