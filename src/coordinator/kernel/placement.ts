import { CANONICAL_VERSION } from "../../common/canonical/canonicalize.ts";
import { sha256Of, wordsOf } from "../../common/sha256.ts";

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

/**
 * Returns the shard of a bucket: jump consistent hash (Lamping and Veach, 2014, arxiv.org/abs/1406.2294) of
 * the first 64 bits of SHA-256 over `<type number>:<canonical value>`. With M shards instead of N, only a
 * share of (M - N) / M of the buckets has another shard, and always one of the additional ones.
 */
export function shardOf(type: number, canonical: string, shards: number): number {
  if (shards === 1) return 0;
  const [high, low] = wordsOf(sha256Of(`${type}:${canonical}`));
  return jumpHash(high, low, shards);
}

/** The multiplier of the generator in the paper, 2862933555777941757, in two halves. */
const MULTIPLIER_HIGH = 0x27bb2ee6;
const MULTIPLIER_LOW = 0x87b0b0fd;

/** @param high - the upper 32 bits of the key, and `low` the lower ones */
export function jumpHash(high: number, low: number, buckets: number): number {
  let bucket = 0;
  let next = 0;
  while (next < buckets) {
    bucket = next;
    // The next key is the key times the multiplier plus 1, modulo 2^64.
    const product = upperHalf(low, MULTIPLIER_LOW);
    high = (product + Math.imul(high, MULTIPLIER_LOW) + Math.imul(low, MULTIPLIER_HIGH)) >>> 0;
    low = Math.imul(low, MULTIPLIER_LOW) >>> 0;
    low = (low + 1) >>> 0;
    if (low === 0) high = (high + 1) >>> 0;
    next = Math.floor((bucket + 1) * (2 ** 31 / ((high >>> 1) + 1)));
  }
  return bucket;
}

/** The upper 32 bits of the product of two 32-bit numbers, whose exact value a number cannot have. */
function upperHalf(a: number, b: number): number {
  const [aHigh, aLow, bHigh, bLow] = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff];
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  return (
    aHigh * bHigh + Math.floor(middle / 2 ** 16) + Math.floor(((middle & 0xffff) + aLow * bHigh) / 2 ** 16)
  );
}
