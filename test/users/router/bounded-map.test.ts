import * as fc from "fast-check";
import { expect, test } from "vitest";
import { BoundedMap } from "../../../src/users/router/lookups/entries.ts";

test("never takes more bytes than it may, with values of 1 kB too", () => {
  const operation = fc.tuple(
    fc.constantFrom("get", "set", "delete"),
    fc.nat({ max: 40 }),
    fc.nat({ max: 2_048 }),
  );
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 300 }), (operations) => {
      const map = new BoundedMap<number>(8_192);
      for (const [kind, key, bytes] of operations) {
        if (kind === "set") map.set(String(key), bytes, bytes);
        else if (kind === "get") map.get(String(key));
        else map.delete(String(key));
        expect(map.bytes).toBeLessThanOrEqual(8_192);
        expect(map.size === 0).toBe(map.bytes === 0);
      }
    }),
  );
});

test("keeps what is used, and drops what was asked for once", () => {
  const map = new BoundedMap<number>(10_000);
  map.set("popular", 1, 100);
  for (let at = 0; at < 1_000; at += 1) {
    map.get("popular");
    map.set(`once-${at}`, at, 100);
  }
  expect(map.get("popular")).toBe(1);
  expect(map.get("once-999")).toBe(999);
  expect(map.get("once-0")).toBeUndefined();
});

test("tells what it drops, and drops a value that is too large for it", () => {
  const dropped: string[] = [];
  const map = new BoundedMap<number>(400, (key) => dropped.push(key));
  map.set("a", 1, 100);
  map.set("b", 2, 100);
  map.set("large", 3, 1_000);
  expect(dropped).toEqual(["a", "b", "large"]);
  expect(map.bytes).toBe(0);
});

test("counts a value that is set again once", () => {
  const map = new BoundedMap<number>(1_000);
  map.set("a", 1, 100);
  const { bytes } = map;
  map.set("a", 2, 100);
  expect(map.bytes).toBe(bytes);
  expect(map.peek("a")).toBe(2);
  map.clear();
  expect(map.size).toBe(0);
});
