import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  defaultLimits,
  limitNames,
  limitTable,
  limitVariable,
  readLimits,
  apiLimitName,
} from "../../src/common/limits.ts";

test("[M6] without variables the defaults apply, and they are in range", () => {
  expect(readLimits({})).toEqual(defaultLimits);
  for (const name of limitNames) {
    expect(limitTable[name].default).toBeGreaterThanOrEqual(limitTable[name].min);
    expect(limitTable[name].default).toBeLessThanOrEqual(limitTable[name].max);
  }
});

test.each(limitNames)("[M6] %s is overridden by its variable, up to both edges", (name) => {
  const { min, max } = limitTable[name];
  const variable = limitVariable(name);
  expect(readLimits({ [variable]: String(min) })[name]).toBe(min);
  expect(readLimits({ [variable]: String(max) })[name]).toBe(max);
  for (const bad of [String(min - 1), String(max + 1), "ten", "1.5", "-1", " 5"])
    expect(() => readLimits({ [variable]: bad })).toThrow(variable);
  expect(readLimits({ [variable]: "" })[name]).toBe(defaultLimits[name]);
});

test("[M6] names in the API and of variables follow from the names in the table", () => {
  expect(apiLimitName("beginDeadlineMs")).toBe("begin_deadline_ms");
  expect(limitVariable("beginDeadlineMs")).toBe("LEASEHOLD_BEGIN_DEADLINE_MS");
});

test("[M6] the reference page lists every limit", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/reference/limits.md"), "utf8");
  const entries = page.matchAll(
    /^- `(LEASEHOLD_\w+)` \(([\d,]+) (\w+); ([\d,]+) to ([\d,]+)\): (.*(?:\n {2}.*)*)$/gm,
  );
  const rows = new Map(
    [...entries].map(([, variable, value, unit, least, most, about = ""]) => [
      variable,
      [value, least, most, unit, about.replaceAll(/\s+/g, " ")],
    ]),
  );
  const shown = (value: number): string => value.toLocaleString("en-US");
  const expected = new Map(
    limitNames.map((name) => {
      const { default: value, min, max, unit, about } = limitTable[name];
      return [limitVariable(name), [shown(value), shown(min), shown(max), unit, about]];
    }),
  );
  expect(rows).toEqual(expected);
});
