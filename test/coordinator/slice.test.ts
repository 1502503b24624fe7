import { expect, test } from "vitest";
import { partOf } from "../support/slice.ts";

test("consecutive slices have every case, and each slice has one", () => {
  for (const count of [1, 2, 3, 7]) {
    const cases = Array.from({ length: count }, (_, index) => index);
    for (const first of [0, 20_000]) {
      const slices = [0, 1, 2].map((number) => partOf(first + number, cases, 3));
      expect(slices.every(({ length }) => length >= 1 && length <= Math.ceil(count / 3))).toBe(true);
      expect(new Set(slices.flat())).toEqual(new Set(cases));
    }
  }
  expect(partOf(5, [], 3)).toEqual([]);
});
