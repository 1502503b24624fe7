import { expect, test } from "vitest";
import type { Entry } from "../../../src/users/router/lookups/entry.ts";
import { Floors } from "../../../src/users/router/lookups/floors.ts";

const KEY = "00000000ffffffff";

const entry = (shard: number, sinceMs: number, key = KEY): Entry => ({
  kind: "none",
  key,
  shard,
  position: 10,
  settled: true,
  sinceMs,
});

const newFloors = (): Floors => new Floors(100_000, () => 7);

test("[Q6] an answer from before a name moved is older than one that was shown since", () => {
  const floors = newFloors();
  floors.raise("a", entry(1, 5), 5);
  expect(floors.isBelow("a", entry(1, 6))).toBe(false);
  floors.raise("a", entry(4, 9), 12);
  floors.raise("a", entry(4, 20), 20);
  expect([9, 11].map((sinceMs) => floors.isBelow("a", entry(1, sinceMs)))).toEqual([true, true]);
  expect(floors.isBackwards("a", entry(1, 11))).toBe(true);
  expect(floors.isBelow("a", entry(4, 9))).toBe(false);
});

test("[Q6] a name that has the hash of another one stays available", () => {
  const floors = newFloors();
  floors.raise("a", entry(4, 9), 12);
  // It was read after the other name had moved, if that has moved.
  expect(floors.isBelow("b", entry(1, 12))).toBe(false);
  expect(floors.isBelow("b", entry(1, 3, "ffffffff00000000"))).toBe(false);
});

test("[Q6] times from before the clock was set back say nothing", () => {
  const floors = newFloors();
  floors.raise("a", entry(4, 9), 12);
  floors.forgetTimes();
  expect(floors.isBelow("a", entry(1, 1))).toBe(false);
});
