import type { LookupAnswer } from "../../src/coordinator/kernel/messages.ts";
import { shardOf, shardsOf } from "../../src/coordinator/kernel/placement.ts";
import type { Result } from "../../src/coordinator/kernel/refusal.ts";
import type { Cluster } from "./cluster.ts";
import { keyOf } from "./ops.ts";

/** The shard that has a name with the placement that clients use. */
export function shardNow(c: Cluster, name: string): number {
  const { type, canonical } = keyOf("ROUTES", name);
  return shardOf(type, canonical, shardsOf(c.envelope.placement));
}

/** Looks a name up. */
export const lookup = (c: Cluster, name: string): Promise<Result<LookupAnswer>> =>
  c.clock.runUntil(
    c.shard(shardNow(c, name)).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", name)] }),
  );

/** Returns the owner of a name, or how it was found. */
export async function ownerOf(c: Cluster, name: string): Promise<string> {
  const reply = await lookup(c, name);
  if (!reply.ok) return reply.refusal.reason ?? reply.refusal.code;
  const [found] = reply.value.found;
  return found?.kind === "record"
    ? `${found.record.status} ${found.record.cell}`
    : (found?.kind ?? "nothing");
}
