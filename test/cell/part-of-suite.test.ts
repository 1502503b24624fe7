import { expect, test } from "vitest";
import { partOf } from "../support/slice.ts";
import { partOfSuite } from "../support/part-of-suite.ts";
import type { TestRunner } from "../../src/cell/conformance/index.ts";

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

test("a part of a suite declares some tests of each describe, and all hooks", () => {
  const declared: string[] = [];
  const note = (kind: string) => () => void declared.push(kind);
  const runner = {
    test: (name: string) => void declared.push(name),
    describe: (name: string, body: () => void) => {
      declared.push(name);
      body();
    },
    beforeAll: note("beforeAll"),
    beforeEach: note("beforeEach"),
    afterAll: note("afterAll"),
    expect,
  } as unknown as TestRunner;
  const part = partOfSuite(runner, 2);
  const body = async (): Promise<void> => {};
  part.test("outside", body, 1);
  part.describe("outer", () => {
    part.beforeAll(body, 1);
    for (const name of ["o1", "o2", "o3", "o4"]) part.test(name, body, 1);
    part.describe("inner", () => part.test("i1", body, 1));
  });
  expect(declared.slice(0, 5)).toEqual(["outside", "outer", "beforeAll", "inner", "i1"]);
  expect([
    ["o1", "o3"],
    ["o2", "o4"],
    ["o1", "o2", "o3", "o4"],
  ]).toContainEqual(declared.slice(5));
});
