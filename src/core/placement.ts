import { sha256 } from "@noble/hashes/sha2.js";
import { CANONICAL_VERSION } from "./canonical/canonicalize.ts";
import { bucketTypes, type BucketTypeName } from "./registry.ts";

/** Version of `shardOf`. Changing what it computes would give names a second owner: golden vectors hold it still. */
const HASH_VERSION = 1;

/** At most one byte of the hash is needed up to here; more shards need a new hash version. */
export const MAX_SHARDS = 256;

/**
 * What decides who owns a name: the hash, the number of shards and the canonical form. The directory fixes it at the first use
 * of a deployment; every message carries it, and an object that was made under another one refuses (rule P1).
 */
export type Placement = string;

export const placementOf = (shards: number): Placement =>
  `hash${HASH_VERSION}.shards${shards}.canonical${CANONICAL_VERSION}`;

export const shardsOf = (placement: Placement): number => Number(/\.shards(\d+)\./.exec(placement)?.[1]);

const utf8 = new TextEncoder();

/** The shard of a bucket: the first 32 bits of SHA-256 over `<type number>:<canonical value>`, modulo the number of shards. */
export function shardOf(type: BucketTypeName, canonical: string, shards: number): number {
  if (shards === 1) return 0;
  const digest = sha256(utf8.encode(`${bucketTypes[type].number}:${canonical}`));
  return new DataView(digest.buffer, digest.byteOffset).getUint32(0) % shards;
}
