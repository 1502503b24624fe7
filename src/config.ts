import { readLimits, type Limits } from "./core/limits.ts";
import { MAX_SHARDS, placementOf, type Placement } from "./core/placement.ts";
import { locationHints, type LocationHint } from "./location-hints.ts";

/** What the variables of a deployment say. */
export interface Config {
  shards: number;
  placement: Placement;
  limits: Limits;
  /** Where the shards are made, at their first use. */
  shardLocationHint: LocationHint | undefined;
  /** Which answers get a line in the log: all, or those with a 5xx. */
  requestLog: (typeof requestLogs)[number];
}

/** Each more makes batches smaller: beside a Worker on D1 alone, 32 clients did 0.6 of its cycles with 16, and as many with 4. */
const DEFAULT_SHARDS = "4";

const requestLogs = ["all", "errors"] as const;

/** Throws a sentence that names the variable which is wrong. */
export function readConfig(variables: Readonly<Record<string, unknown>>): Config {
  const shards = shardsOf(variables["LEASEHOLD_SHARDS"] ?? DEFAULT_SHARDS);
  const shardLocationHint = locationHintOf(variables["LEASEHOLD_SHARD_LOCATION_HINT"]);
  const requestLog = requestLogOf(variables["LEASEHOLD_REQUEST_LOG"]);
  return {
    shards,
    placement: placementOf(shards),
    limits: readLimits(variables),
    shardLocationHint,
    requestLog,
  };
}

function requestLogOf(given: unknown): Config["requestLog"] {
  if (given === undefined || given === "") return "all";
  const known = requestLogs.find((each) => each === given);
  if (known === undefined) throw new Error(`LEASEHOLD_REQUEST_LOG must be one of ${requestLogs.join(", ")}`);
  return known;
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
