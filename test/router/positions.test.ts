/** Positions in text and cookies, as clients may send them. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatPositions,
  mergePositions,
  parsePositions,
  positionCookie,
  positionsFromCookie,
} from "../../src/router/positions.ts";

const pairs = fc.uniqueArray(fc.tuple(fc.nat({ max: 65_535 }), fc.maxSafeNat()), {
  minLength: 1,
  maxLength: 16,
  selector: ([shard]) => shard,
});

describe("positions in text", () => {
  test("are read as they were written", () => {
    fc.assert(
      fc.property(pairs, (given) => {
        const positions = new Map(given);
        const read = parsePositions(formatPositions(positions));
        expect(new Map(read)).toEqual(positions);
      }),
    );
  });

  test.each([
    ["nothing", ""],
    ["no position", "3"],
    ["an empty position", "3:"],
    ["a negative position", "3:-1"],
    ["a fraction", "3:1.5"],
    ["an exponent", "3:1e3"],
    ["a leading zero", "3:01"],
    ["a space", "3: 1"],
    ["a comma at the end", "3:1,"],
    ["a shard twice", "3:1,3:2"],
    ["a shard beyond all", "65536:1"],
    ["a position that no double can hold", "3:9007199254740993"],
    ["17 pairs", Array.from({ length: 17 }, (_, shard) => `${shard}:1`).join(",")],
    ["more than 512 bytes", `3:1,${" ".repeat(600)}`],
    ["digits of another script", "3:٤"],
  ])("are refused with %s", (_, text) => {
    expect(parsePositions(text)).toBeUndefined();
  });

  test("never throw, whatever a client sends", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const read = parsePositions(text);
        if (read !== undefined) expect(formatPositions(read).split(",")).toHaveLength(read.size);
      }),
    );
  });

  test("keep the 16 pairs that were set last", () => {
    const first = new Map(Array.from({ length: 17 }, (_, shard) => [shard, 1] as const));
    const read = parsePositions(formatPositions(mergePositions(first, new Map([[0, 2]]))));
    expect(read?.get(0)).toBe(2);
    expect(read?.has(1)).toBe(false);
    expect(read?.size).toBe(16);
  });

  test("are not written if they are no whole numbers", () => {
    expect(() => formatPositions(new Map([[3, 0.5]]))).toThrow("`positions` must have whole numbers");
    expect(() => formatPositions(new Map([[-1, 5]]))).toThrow(RangeError);
  });

  test("are joined with the larger position of each shard", () => {
    const merged = mergePositions(
      new Map([
        [1, 10],
        [2, 20],
      ]),
      new Map([
        [2, 15],
        [3, 30],
      ]),
    );
    expect([...merged].toSorted(([a], [b]) => a - b)).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
  });
});

describe("the cookie", () => {
  test("is found between others", () => {
    const header = "a=b; Leasehold-Position=3:4711,5:88; session=x=y";
    expect([...positionsFromCookie(header)]).toEqual([
      [3, 4711],
      [5, 88],
    ]);
  });

  test.each([null, undefined, "", "a=b", "Leasehold-Position", "Leasehold-Position=x", "leasehold=3:1"])(
    "carries nothing in %j",
    (header) => {
      expect(positionsFromCookie(header).size).toBe(0);
    },
  );

  test("comes back as it was set", () => {
    const [set = ""] = positionCookie(new Map([[3, 4711]]), 5).split("; ");
    expect([...positionsFromCookie(set)]).toEqual([[3, 4711]]);
  });

  test("ends by itself, and stays away from scripts", () => {
    expect(positionCookie(new Map([[3, 4711]]), 5)).toBe(
      "Leasehold-Position=3:4711; Max-Age=5; Path=/; HttpOnly; Secure; SameSite=Lax",
    );
    expect(() => positionCookie(new Map(), 0.5)).toThrow("`maxAgeS`");
  });
});
