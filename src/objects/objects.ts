import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import type { LocationHint } from "../location-hints.ts";
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

export function objectsOf(env: Env, config: Config): Objects {
  const { shardLocationHint } = config;
  return {
    ledger: (cell, locationHint) =>
      env.CELL_LEDGER.getByName(
        ledgerName(cell),
        locationHint ? { locationHint: locationHint as LocationHint } : {},
      ),
    shard: (index) =>
      env.CLAIM_SHARD.getByName(
        shardName(index),
        shardLocationHint === undefined ? {} : { locationHint: shardLocationHint },
      ),
    directory: () => env.DIRECTORY.getByName("directory"),
  };
}

const ledgerName = (cell: string): string => `cell-${cell}`;
const shardName = (index: number): string => `shard-${index}`;
