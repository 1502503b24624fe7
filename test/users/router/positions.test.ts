/** Positions in text and cookies, as clients may send them. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_SHARDS } from "../../../src/coordinator/kernel/placement.ts";
import {
  formatPositions,
  mergePositions,
  parsePositions,
  positionCookie,
  positionsFromCookie,
} from "../../../src/users/router/positions.ts";

/** As many as always fit. */
const pairs = fc.uniqueArray(fc.tuple(fc.nat({ max: 255 }), fc.maxSafeNat()), {
  minLength: 1,
  maxLength: 190,
  selector: ([shard]) => shard,
});

const everyShard = (position: number): string =>
  Array.from({ length: MAX_SHARDS }, (_, shard) => `${shard}:${position}`).join(",");

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
    ["a shard beyond all", "256:1"],
    ["a position that no double can hold", "3:9007199254740993"],
    ["more than 4,000 characters", everyShard(9_007_199_254_740_991)],
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

  test("fit for every shard that a deployment can have", () => {
    const text = everyShard(99_999_999_999);
    expect(parsePositions(text)?.size).toBe(MAX_SHARDS);
    expect(formatPositions(parsePositions(text) ?? new Map())).toBe(text);
    const cookie = positionCookie(parsePositions(text) ?? new Map(), Number.MAX_SAFE_INTEGER);
    expect(cookie.length).toBeLessThanOrEqual(4_096);
  });

  test("that don't fit leave out the pairs that were set first", () => {
    const largest = Number.MAX_SAFE_INTEGER;
    const first = new Map(Array.from({ length: MAX_SHARDS }, (_, shard) => [shard, largest - 1] as const));
    const text = formatPositions(mergePositions(first, new Map([[0, largest]])));
    const read = parsePositions(text);
    expect(read?.get(0)).toBe(largest);
    expect(read?.has(1)).toBe(false);
    expect(read?.has(255)).toBe(true);
    expect(text.length).toBeGreaterThan(4_000 - "255:9007199254740991,".length);
  });

  test("are not written if they are no whole numbers", () => {
    expect(() => formatPositions(new Map([[3, 0.5]]))).toThrow("`positions` must have whole numbers");
    expect(() => formatPositions(new Map([[-1, 5]]))).toThrow(RangeError);
    expect(() => formatPositions(new Map([[MAX_SHARDS, 5]]))).toThrow(RangeError);
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
