/** Tests the figures of the growth benchmark. growth.deep.test.ts tests the states that it fills. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { storedNames } from "../../bench/growth/numbered-names.ts";
import { Results, type Result } from "../../bench/growth/results.ts";
import { rowsOf } from "../../bench/growth/table.ts";
import { axes, isBase, variantOf, variantsOf } from "../../bench/growth/variants.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-growth-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

test("names are unique in every order", () => {
  const names = storedNames();
  const count = 25_000;
  const inOrder = [...names.inNameOrder(count)];
  expect(inOrder.toSorted((a, b) => a - b)).toEqual([...Array(count).keys()]);
  const canonicals = new Set(inOrder.map((index) => names.at(index).canonical));
  expect(canonicals.size).toBe(count);
  expect(new Set(inOrder.map((index) => names.scattered(index).canonical))).toHaveLength(count);
});

test.each(axes)("the variants of %s have one base, and differ in nothing else", (axis) => {
  for (const extent of ["full", "small"] as const) {
    const variants = variantsOf(axis, extent);
    const bases = variants.filter((variant) => isBase(axis, variant));
    expect(bases).toEqual([variantOf({})]);
    for (const variant of variants) expect({ ...variant, [axis]: bases[0]?.[axis] }).toEqual(bases[0]);
  }
});

const result = (claims: number, round: number, turns: number, errors = 0): Result => ({
  commit: "abc",
  axis: "claims",
  variant: variantOf({ claims }),
  work: "cycles",
  round,
  turns,
  errors,
  seconds: 1,
  p50Ms: round,
  cpuMs: 100,
});

test("ratios are medians of each round's ratio to the base", () => {
  const bases = [result(1_000, 0, 100), result(1_000, 1, 50), result(1_000, 2, 10)];
  const others = [result(5_000, 0, 50), result(5_000, 1, 40), result(5_000, 2, 10)];
  expect(rowsOf("claims", [...bases, ...others])).toMatchObject([
    { value: 1_000, perSecond: 50, rateRatio: 1, cpuRatio: 1 },
    { value: 5_000, perSecond: 40, cpuMs: 3, rateRatio: 0.8, cpuRatio: 1.25, errors: 0 },
  ]);
});

test("a result of the same code and variant without errors is not measured again", () => {
  const path = join(newFolder(), "growth.jsonl");
  const before = new Results(path);
  before.add(result(1_000, 0, 100));
  before.add(result(5_000, 0, 100, 1));
  const after = new Results(path);
  expect(after.has(result(1_000, 0, 0))).toBe(true);
  expect(after.has(result(5_000, 0, 0))).toBe(false);
  expect(after.has({ ...result(1_000, 0, 0), commit: "def" })).toBe(false);
  expect(after.has({ ...result(1_000, 0, 0), axis: "shards" })).toBe(false);
  after.add(result(5_000, 0, 90));
  expect(after.of("abc", "claims")).toEqual([result(1_000, 0, 100), result(5_000, 0, 90)]);
  expect(after.of("def", "claims")).toEqual([]);
});
