import { expect, test } from "vitest";
import { DigestSum, digestWordsOf, type DigestedClaim } from "../../src/common/digest.ts";
import { bucketType, sourceOf, subjectOf } from "../support/types.ts";

const ada: DigestedClaim = {
  type: bucketType("USERNAMES"),
  canonical: "ada",
  value: "Ada",
  subject: subjectOf("USER", "7"),
  source: sourceOf("RAILS_TABLE_USERS", "7"),
  scope: null,
};

function hashOf(...claims: readonly DigestedClaim[]): string {
  const sum = new DigestSum();
  for (const claim of claims) sum.add(digestWordsOf(claim));
  return sum.hash;
}

test("[R4] the digest of a claim never changes (golden vectors)", () => {
  // printf '4\nada\nAda\n4\n7\n1\n7' | sha256sum
  expect(hashOf(ada)).toBe("9e8f0ec3bc1e1bffba9946d59e9f5e2a");
  // printf '1\ngrüße/x\nGrüße/x\n3\n278964\n3\n1042' | sha256sum
  const route: DigestedClaim = {
    type: bucketType("ROUTES"),
    canonical: "grüße/x",
    value: "Grüße/x",
    subject: subjectOf("PROJECT", "278964"),
    source: sourceOf("RAILS_TABLE_ROUTES", "1042"),
    scope: null,
  };
  expect(hashOf(route)).toBe("acfb3dead34486bcbb05cbaa59ea9beb");
  // printf '4\nada\nAda\n4\n7\n1\n7\n9970' | sha256sum
  expect(hashOf({ ...ada, scope: "9970" })).toBe("ac240cb71b5f796f6ff04fa2e0d96b34");
});

test("[R4] the digest of a claim covers everything that the cell's row determines", () => {
  const others: DigestedClaim[] = [
    { ...ada, type: bucketType("EMAILS") },
    { ...ada, canonical: "ada2" },
    { ...ada, value: "ADA" },
    { ...ada, subject: subjectOf("NAMESPACE", "7") },
    { ...ada, subject: subjectOf("USER", "8") },
    { ...ada, source: sourceOf("RAILS_TABLE_EMAILS", "7") },
    { ...ada, source: sourceOf("RAILS_TABLE_USERS", "8") },
    { ...ada, scope: "9970" },
    { ...ada, scope: "9971" },
  ];
  expect(new Set([ada, ...others].map((claim) => hashOf(claim))).size).toBe(others.length + 1);
});

test("[R4] the digest of a set does not depend on the order, and digests can be added", () => {
  const eve = { ...ada, canonical: "eve", value: "eve" };
  const bob = { ...ada, canonical: "bob", value: "bob" };
  expect(hashOf(ada, eve, bob)).toBe(hashOf(bob, ada, eve));
  const parts = new DigestSum();
  for (const claims of [[ada, eve], [bob]]) {
    const sums = claims
      .map(digestWordsOf)
      .reduce((a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]);
    parts.add(sums, claims.length);
  }
  expect([parts.hash, parts.count]).toEqual([hashOf(ada, eve, bob), 3]);
});

test("[R4] the digest of no claims is zero", () => {
  expect([new DigestSum().hash, new DigestSum().count]).toEqual(["0".repeat(32), 0]);
});
