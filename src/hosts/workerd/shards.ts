import { shardsOf } from "../../coordinator/kernel/placement.ts";

/**
 * Says what is wrong with LEASEHOLD_SHARDS for a deployment that runs: it must not ask for more shards than
 * the deployment has. It may ask for fewer, because the deployment may have grown. Undefined: nothing.
 */
export function shardsFault(configured: string | undefined, placement: string): string | undefined {
  const shards = shardsOf(placement);
  if (configured === undefined || Number(configured) <= shards) return undefined;
  return (
    `LEASEHOLD_SHARDS is ${configured}, but the deployment has ${shards} shards; leave out the variable, ` +
    "and change the number with `leasehold shards grow`"
  );
}
