import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import type { LocationHint } from "../location-hints.ts";
import { callsOf } from "../tracing/traced-calls.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { DirectoryCalls, LedgerCalls, ShardCalls } from "./calls.ts";

/**
 * Gives access to the objects. Each call makes a new stub, because a stub that has met a reset fails from
 * then on.
 */
export interface Objects {
  ledger(cell: string, locationHint?: string | null): LedgerCalls;
  shard(index: number): ShardCalls;
  directory(): DirectoryCalls;
}

/** @param tracer records the calls whose messages have traces */
export function objectsOf(env: Env, config: Config, tracer?: Tracer): Objects {
  const { shardLocationHint } = config;
  const shardOptions = shardLocationHint === undefined ? {} : { locationHint: shardLocationHint };
  return {
    ledger: (cell, locationHint) => {
      const name = ledgerName(cell);
      const options = locationHint ? { locationHint: locationHint as LocationHint } : {};
      return callsOf(env.CELL_LEDGER.getByName(name, options), name, tracer);
    },
    shard: (index) => {
      const name = shardName(index);
      return callsOf(env.CLAIM_SHARD.getByName(name, shardOptions), name, tracer);
    },
    directory: () => callsOf(env.DIRECTORY.getByName(DIRECTORY_NAME), DIRECTORY_NAME, tracer),
  };
}

export const ledgerName = (cell: string): string => `cell-${cell}`;
export const shardName = (index: number): string => `shard-${index}`;
export const DIRECTORY_NAME = "directory";
