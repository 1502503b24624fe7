import { readAccess, type AccessSettings } from "./auth/access-settings.ts";
import { readLimits, type Limits } from "../common/limits.ts";
import { MAX_SHARDS } from "./kernel/placement.ts";
import { locationHints, type LocationHint } from "./location-hints.ts";
import { readTracing, type TracingSettings } from "./tracing/settings.ts";

/** The values of a deployment's variables. */
export interface Config {
  /** The number of shards with which a new deployment starts. Registering the first cell fixes it (P2). */
  initialShards: number;
  limits: Limits;
  /** The region in which the shards are created, at their first use. */
  shardLocationHint: LocationHint | undefined;
  /** The share of ordinary requests that are logged, from 0 to 1. Failures are always logged. */
  requestLogShare: number;
  /** Undefined: nothing is traced. */
  tracing: TracingSettings | undefined;
  /** Undefined: the console does not accept users of Cloudflare Access. */
  access: AccessSettings | undefined;
  /** `public`: public hosts only, over https. `any`: private hosts too, and loopback over http. */
  webhookHosts: WebhookHosts;
}

export type WebhookHosts = "public" | "any";

/** See docs/decisions/0049-sixteen-shards-by-default.md for its choice. */
const DEFAULT_SHARDS = "16";

/** See docs/decisions/0040-one-request-in-a-hundred-is-logged.md for the costs. */
const DEFAULT_REQUEST_LOG_SHARE = 0.01;

/** Throws an Error whose message names the variable that is wrong. */
export function readConfig(variables: Readonly<Record<string, unknown>>): Config {
  const initialShards = shardsOf(variables["LEASEHOLD_SHARDS"] ?? DEFAULT_SHARDS);
  const shardLocationHint = locationHintOf(variables["LEASEHOLD_SHARD_LOCATION_HINT"]);
  const requestLogShare = requestLogShareOf(variables["LEASEHOLD_REQUEST_LOG"]);
  return {
    initialShards,
    limits: readLimits(variables),
    shardLocationHint,
    requestLogShare,
    tracing: readTracing(variables),
    access: readAccess(variables),
    webhookHosts: webhookHostsOf(variables["LEASEHOLD_WEBHOOK_HOSTS"]),
  };
}

function requestLogShareOf(given: unknown): number {
  if (given === undefined || given === "") return DEFAULT_REQUEST_LOG_SHARE;
  if (given === "all") return 1;
  if (given === "errors") return 0;
  const share = typeof given === "string" && /^\d(\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
  if (share >= 0 && share <= 1) return share;
  throw new Error("LEASEHOLD_REQUEST_LOG must be all, errors, or a share from 0 to 1 such as 0.01");
}

function webhookHostsOf(given: unknown): WebhookHosts {
  if (given === undefined || given === "" || given === "public") return "public";
  if (given === "any") return "any";
  throw new Error("LEASEHOLD_WEBHOOK_HOSTS must be public or any");
}

function shardsOf(given: unknown): number {
  const shards = typeof given === "string" && /^\d+$/.test(given) ? Number(given) : 0;
  if (shards < 1 || shards > MAX_SHARDS)
    throw new Error(`LEASEHOLD_SHARDS must be a whole number from 1 to ${MAX_SHARDS}`);
  return shards;
}

function locationHintOf(given: unknown): LocationHint | undefined {
  if (given === undefined || given === "") return undefined;
  const hint = locationHints.find((known) => known === given);
  if (hint === undefined)
    throw new Error(`LEASEHOLD_SHARD_LOCATION_HINT must be one of ${locationHints.join(", ")}`);
  return hint;
}
