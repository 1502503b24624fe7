import { describe, expect, test } from "vitest";
import type { Entry } from "../../../src/users/router/lookups/entries.ts";
import { Floors, FloorTable } from "../../../src/users/router/lookups/floors.ts";

const keyOf = (number: number): string => (number * 2_654_435_761).toString(16).padStart(16, "0");

/** A table, and the floors that it has forgotten. */
function newTable(maxBytes: number, salt = 7): { table: FloorTable; forgotten: [number, number][] } {
  const forgotten: [number, number][] = [];
  const table = new FloorTable(
    maxBytes,
    () => salt,
    (shard, position) => forgotten.push([shard, position]),
  );
  return { table, forgotten };
}

describe("[Q6] the table of floors", () => {
  test("has the largest position of each key and shard", () => {
    const { table, forgotten } = newTable(10_000);
    const key = "00000000ffffffff";
    table.raise(3, key, 12, 0);
    table.raise(3, key, 11, 0);
    table.raise(4, key, 2 ** 40, 0);
    expect([table.get(3, key), table.get(4, key), table.get(5, key)]).toEqual([12, 2 ** 40, undefined]);
    expect(table.get(3, "ffffffff00000000")).toBeUndefined();
    expect(forgotten).toEqual([]);
  });

  test("tells every floor that it forgets, once, and has all others", () => {
    const { table, forgotten } = newTable(36 * 8 * 100);
    const count = 2_000;
    for (let number = 1; number <= count; number += 1) table.raise(number % 16, keyOf(number), number, 0);
    const kept = Array.from({ length: count }, (_, at) => at + 1).filter(
      (number) => table.get(number % 16, keyOf(number)) === number,
    );
    expect(kept.length).toBeLessThanOrEqual(800);
    expect(kept.length).toBeGreaterThan(700);
    const told = forgotten.map(([, position]) => position);
    expect([...kept, ...told].toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: count }, (_, at) => at + 1),
    );
    expect(forgotten.every(([shard, position]) => shard === position % 16)).toBe(true);
    expect(table.bytes).toBe(36 * 8 * 100);
  });

  test("forgets what was used least recently", () => {
    const { table, forgotten } = newTable(36 * 8);
    for (let number = 1; number <= 8; number += 1) table.raise(0, keyOf(number), 100 + number, 0);
    table.get(0, keyOf(1));
    table.raise(0, keyOf(2), 50, 0);
    table.raise(0, keyOf(9), 109, 0);
    expect(forgotten).toEqual([[0, 103]]);
    expect(table.get(0, keyOf(1))).toBe(101);
  });

  test("without room for one bucket, forgets every floor at once", () => {
    const { table, forgotten } = newTable(100);
    table.raise(2, keyOf(1), 12, 0);
    expect([table.get(2, keyOf(1)), forgotten, table.bytes]).toEqual([undefined, [[2, 12]], 0]);
  });

  test("the salt decides which keys share a bucket", () => {
    const lost = [1, 2].map((salt) => {
      const { table, forgotten } = newTable(36 * 8 * 20, salt);
      for (let number = 1; number <= 200; number += 1) table.raise(0, keyOf(number), number, 0);
      return forgotten;
    });
    expect(lost[0]).not.toEqual(lost[1]);
  });
});

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
