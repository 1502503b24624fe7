import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import {
  jumpHash,
  MAX_SHARDS,
  placementOf,
  shardOf,
  shardsOf,
} from "../../../src/coordinator/kernel/placement.ts";
import { bucketType, bucketTypeNames, type BucketTypeName } from "../../support/types.ts";

/**
 * Frozen: if the shard of a name changed, the name could get a second owner. If this test fails, the hash
 * needs a new version and a way to move names.
 */
const golden: [BucketTypeName, string, number, number][] = [
  ["ROUTES", "gitlab-org", 16, 5],
  ["ROUTES", "gitlab-org/gitlab", 16, 1],
  ["ORGANIZATION_PATH", "gitlab-org", 16, 10],
  ["REDIRECT_ROUTES", "gitlab-org", 16, 14],
  ["USERNAMES", "ada", 16, 1],
  ["EMAILS", "ada@example.com", 16, 5],
  ["ROUTES", "straße", 16, 1],
  ["ROUTES", "漢字", 16, 2],
  ["ROUTES", "🚀", 256, 135],
  ["ROUTES", "a", 1, 0],
];

test("[P1] the shard of a bucket never changes (golden vectors)", () => {
  expect(
    golden.map(([type, canonical, shards]) => [
      type,
      canonical,
      shards,
      shardOf(bucketType(type), canonical, shards),
    ]),
  ).toEqual(golden);
});

/** From the tests of another implementation of the paper, Guava's `Hashing.consistentHash`. */
const published: [key: bigint, buckets: number, bucket: number][] = [
  ...[0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83].map(
    (bucket, key): [bigint, number, number] => [BigInt(key), 100, bucket],
  ),
  [10_863_919_174_838_991n, 11, 6],
  [2_016_238_256_797_177_309n, 11, 3],
  [1_673_758_223_894_951_030n, 11, 5],
  [2n, 100_001, 80_343],
  [2_201n, 100_001, 22_152],
  [2_202n, 100_001, 15_018],
];

test("[P1] jump consistent hash gives the published results", () => {
  for (const [key, buckets, bucket] of published)
    expect(jumpHash(Number(key >> 32n), Number(key & 0xffff_ffffn), buckets)).toBe(bucket);
});

test("[P1] a shard is the jump hash of the first 64 bits of SHA-256 over type and canonical value", () => {
  for (const type of bucketTypeNames) {
    for (const canonical of ["a", "ada@example.com", "漢字/🚀", "x".repeat(1_024)]) {
      const digest = createHash("sha256")
        .update(`${bucketType(type)}:${canonical}`)
        .digest();
      expect(shardOf(bucketType(type), canonical, 16)).toBe(
        jumpHash(digest.readUInt32BE(0), digest.readUInt32BE(4), 16),
      );
    }
  }
});

test("[P1] more shards move only a share of the names, and only to new shards", () => {
  for (const [from, to] of [
    [1, 2],
    [4, 16],
    [16, 17],
    [5, 9],
  ] as const) {
    let moved = 0;
    for (let n = 0; n < 4_000; n += 1) {
      const [before, after] = [from, to].map((shards) => shardOf(1, `name-${n}`, shards));
      if (before === after) continue;
      moved += 1;
      expect(after).toBeGreaterThanOrEqual(from);
    }
    expect(moved / 4_000).toBeCloseTo((to - from) / to, 1);
  }
});

test("[P1] the placement has the versions of hash and canonical form, and the number of shards", () => {
  expect(placementOf(16)).toBe("hash1.shards16.canonical1");
  expect(shardsOf(placementOf(MAX_SHARDS))).toBe(MAX_SHARDS);
});

test("names are spread evenly over the shards", () => {
  const counts = Array.from({ length: 16 }, () => 0);
  for (let n = 0; n < 16_000; n += 1) {
    const shard = shardOf(bucketType("ROUTES"), `name-${n}`, 16);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  expect(Math.min(...counts)).toBeGreaterThan(850);
  expect(Math.max(...counts)).toBeLessThan(1_150);
});
