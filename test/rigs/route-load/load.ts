/** Counts how many questions a router sends while many clients look up names that change. */
import { CachedRoutes, type LookupOptions } from "../../../src/users/router/lookups/cached-routes.ts";
import { Random } from "../sim/random.ts";
import { Truth } from "./truth.ts";
import { VirtualTime } from "./virtual-time.ts";
import { Zipf } from "./zipf.ts";

export interface LoadOptions {
  names: number;
  shards: number;
  lookupsPerSecond: number;
  changesPerSecond: number;
  reports: boolean;
  memoryBytes: number;
  /** The router fills its memory for this long. Nothing is counted yet. */
  warmUpS: number;
  countedS: number;
}

export interface LoadFigures {
  lookups: number;
  /** Lookups that were not answered with a route. */
  failures: number;
  /** Messages to shards for one lookup, on average: lookups and reports. */
  callsPerLookup: number;
  /** The most reports that one shard was asked for in a second, on average over the run. */
  reportsPerShardAndSecond: number;
  memoryBytes: number;
}

export async function measureLoad(options: LoadOptions): Promise<LoadFigures> {
  const time = new VirtualTime();
  const truth = new Truth(time, options);
  const routes = new CachedRoutes({ ...defaults, ...options, source: truth, clock: time });
  const lookups = new Zipf(options.names, Random.of(1, "lookups"));
  const changes = Random.of(1, "changes");
  let failures = 0;
  const look = async (): Promise<void> => {
    const claim = truth.claims[lookups.draw()];
    if (claim === undefined) throw new Error("there is no such rank");
    const answer = await routes.find(claim.name);
    if (answer.kind !== "found") failures += 1;
  };
  let asked = { names: 0, reports: 0 };
  const endMs = (options.warmUpS + options.countedS) * 1_000;
  for (let lookupsDue = 0, changesDue = 0; time.now() < endMs;) {
    if (time.now() === options.warmUpS * 1_000) asked = { ...truth.asked };
    for (lookupsDue += options.lookupsPerSecond / 1_000; lookupsDue >= 1; lookupsDue -= 1) void look();
    for (changesDue += options.changesPerSecond / 1_000; changesDue >= 1; changesDue -= 1)
      truth.change(changes.pick(truth.claims));
    await time.pass();
  }
  const counted = options.lookupsPerSecond * options.countedS;
  const names = truth.asked.names - asked.names;
  const reports = truth.asked.reports - asked.reports;
  return {
    lookups: counted,
    failures,
    callsPerLookup: (names + reports) / counted,
    reportsPerShardAndSecond: reports / options.shards / options.countedS,
    memoryBytes: routes.bytes,
  };
}

/** The defaults of `createRoutes`. */
const defaults: Omit<LookupOptions, "source" | "clock" | "reports" | "memoryBytes"> = {
  maxAgeMs: 5_000,
  reportedMaxAgeMs: 300_000,
  boundMs: 2_000,
  negativeMaxAgeMs: 1_000,
  graceMs: 600_000,
  timeoutMs: 2_000,
  hooks: {},
  drawSalt: () => 1,
};
