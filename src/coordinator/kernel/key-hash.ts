import type { BucketKey } from "./messages.ts";

const HASH_DIGITS = 16;
const LANE_DIGITS = HASH_DIGITS / 2;

/** Two odd multipliers: the prime of FNV-1a, and 2^32 divided by the golden ratio. */
const PRIME = 0x01000193;
const GOLDEN = 0x9e3779b1;

/**
 * Returns a 64-bit hash of a key, as 16 hexadecimal digits, for reports and answers to routers (Q1). It is
 * fast and not cryptographic. If two keys have the same hash, routers ask more often than they need to, but
 * no answer is wrong.
 */
export function keyHash({ type, canonical }: BucketKey): string {
  let a = Math.imul(type ^ GOLDEN, PRIME);
  let b = Math.imul(type ^ PRIME, GOLDEN);
  for (let index = 0; index < canonical.length; index += 1) {
    const unit = canonical.charCodeAt(index);
    a = Math.imul(a ^ unit, PRIME);
    b = Math.imul(b ^ unit, GOLDEN);
    b ^= b >>> 15;
  }
  return hex(mixed(a ^ (b >>> 7))) + hex(mixed(b ^ a));
}

/** Cuts hashes apart that were stored one after the other. */
export const splitKeyHashes = (hashes: string): string[] =>
  Array.from({ length: hashes.length / HASH_DIGITS }, (_, index) =>
    hashes.slice(index * HASH_DIGITS, (index + 1) * HASH_DIGITS),
  );

/** Spreads every bit over the whole number: the finalizer of MurmurHash3. */
function mixed(lane: number): number {
  let mix = lane ^ (lane >>> 16);
  mix = Math.imul(mix, 0x85ebca6b);
  mix ^= mix >>> 13;
  mix = Math.imul(mix, 0xc2b2ae35);
  return mix ^ (mix >>> 16);
}

const hex = (lane: number): string => (lane >>> 0).toString(16).padStart(LANE_DIGITS, "0");
