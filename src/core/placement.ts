import { sha256 } from "@noble/hashes/sha2.js";
import { CANONICAL_VERSION } from "./canonical/canonicalize.ts";

/**
 * The version of `shardOf`. A change of its result would give a name a second owner; golden vectors test that
 * it stays the same.
 */
const HASH_VERSION = 1;

/** The largest number of shards. More shards need a new hash version. */
export const MAX_SHARDS = 256;

/**
 * Everything that determines who owns a name: the versions of hash and canonical form, and the number of
 * shards. The directory fixes it when the first cell is registered (P2). Every message carries it, and an
 * object with another placement refuses the message (P1).
 */
export type Placement = string;

export const placementOf = (shards: number): Placement =>
  `hash${HASH_VERSION}.shards${shards}.canonical${CANONICAL_VERSION}`;

export const shardsOf = (placement: Placement): number => Number(/\.shards(\d+)\./.exec(placement)?.[1]);

const utf8 = new TextEncoder();

/**
 * Returns the shard of a bucket: the first 32 bits of SHA-256 over `<type number>:<canonical value>`, modulo
 * the number of shards.
 */
export function shardOf(type: number, canonical: string, shards: number): number {
  if (shards === 1) return 0;
  const digest = sha256(utf8.encode(`${type}:${canonical}`));
  return new DataView(digest.buffer, digest.byteOffset).getUint32(0) % shards;
}
