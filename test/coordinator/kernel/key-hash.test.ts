import { expect, test } from "vitest";
import { keyHash, splitKeyHashes } from "../../../src/coordinator/kernel/key-hash.ts";

test("the hash of a key stays the same, because routers keep it over deployments of the Worker", () => {
  expect(keyHash({ type: 1, canonical: "gitlab-org/gitlab" })).toBe("e7d04c427ece73ba");
  expect(keyHash({ type: 2, canonical: "gitlab-org/gitlab" })).toBe("d51b989602d58a35");
  expect(keyHash({ type: 1, canonical: "" })).toBe("f3ad1f6f2d1d46c5");
});

test("200,000 similar keys have different hashes", () => {
  const hashes = new Set<string>();
  for (let type = 1; type <= 4; type += 1)
    for (let index = 0; index < 50_000; index += 1)
      hashes.add(keyHash({ type, canonical: `group-${index % 500}/project-${index}` }));
  expect(hashes.size).toBe(200_000);
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{16}$/);
});

test("stored hashes are cut apart again", () => {
  const hashes = ["a", "b", "c"].map((canonical) => keyHash({ type: 1, canonical }));
  expect(splitKeyHashes(hashes.join(""))).toEqual(hashes);
  expect(splitKeyHashes("")).toEqual([]);
});
