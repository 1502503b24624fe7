import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { MAX_SHARDS, placementOf, shardOf, shardsOf } from "../../src/core/placement.ts";
import { bucketType, bucketTypeNames, type BucketTypeName } from "../support/types.ts";

/**
 * Frozen: if the shard of a name changed, the name could get a second owner. If this test fails, the hash
 * needs a new version and a way to move names.
 */
const golden: [BucketTypeName, string, number, number][] = [
  ["ROUTES", "gitlab-org", 16, 4],
  ["ROUTES", "gitlab-org/gitlab", 16, 14],
  ["ORGANIZATION_PATH", "gitlab-org", 16, 8],
  ["REDIRECT_ROUTES", "gitlab-org", 16, 12],
  ["USERNAMES", "ada", 16, 8],
  ["EMAILS", "ada@example.com", 16, 0],
  ["ROUTES", "straße", 16, 15],
  ["ROUTES", "漢字", 16, 13],
  ["ROUTES", "🚀", 256, 239],
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

test("[P1] a shard is the first 32 bits of SHA-256 over type number and canonical value", () => {
  for (const type of bucketTypeNames) {
    for (const canonical of ["a", "ada@example.com", "漢字/🚀", "x".repeat(1_024)]) {
      const digest = createHash("sha256")
        .update(`${bucketType(type)}:${canonical}`)
        .digest();
      expect(shardOf(bucketType(type), canonical, 16)).toBe(digest.readUInt32BE(0) % 16);
    }
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
