import { describe, expect, test } from "vitest";
import { fieldPath, parseJson } from "../../src/http/json.ts";

const DEPTH = 8;
const fieldIn = (text: string): string | undefined => {
  const result = parseJson(text, DEPTH);
  return result.ok ? undefined : result.refusal.field;
};

test.each([
  '{"a":[{"b":1},{"b":2}],"c":"\\"}{\\\\"}',
  '{"a":{"x":1},"b":{"x":1}}',
  '"a:b"',
  ' [ "a" , "a" , { } ] ',
  '{"a":"a","b":"b:","":{"":1}}',
  "null",
  "1e3",
])("%s gives the same value as JSON.parse", (text) => {
  expect(parseJson(text, DEPTH)).toEqual({ ok: true, value: JSON.parse(text) });
});

describe("is refused, and names the field:", () => {
  test.each([
    ['{"a":1,"a":1}', "a"],
    ['{"a":1, "b":{"c":[0,1,{"d":1 , "d" :2}]}}', "b.c[2].d"],
    ['{"\\u0061":1,"a":1}', "a"],
    ['{"a\\"b":1,"a\\"b":1}', 'a"b'],
    ['{"__proto__":1}', "__proto__"],
    ['{"a":[{"__pro\\u0074o__":1}]}', "a[0].__proto__"],
    ['{"":1,"":1}', "body"],
  ])("%s", (text, field) => expect(fieldIn(text)).toBe(field));

  test.each([
    "",
    "{",
    "}",
    "]",
    "[1,]",
    '{"a"}',
    '{"a":}',
    "{'a':1}",
    "NaN",
    "01",
    '"\n"',
    "[1] [2]",
    '{"a":1}}',
    "\ufeff{}",
    '"',
    '{"a',
    "undefined",
    "// c\n1",
  ])("%j is not JSON", (text) => expect(fieldIn(text)).toBe("body"));
});

test.each([
  [DEPTH, true],
  [DEPTH + 1, false],
])("%i levels of nesting: accepted %s", (levels, fits) => {
  expect(parseJson("[".repeat(levels) + "]".repeat(levels), DEPTH).ok).toBe(fits);
  expect(parseJson('{"a":'.repeat(levels) + "1" + "}".repeat(levels), DEPTH).ok).toBe(fits);
});

test("a megabyte of brackets is refused without being parsed", () => {
  expect(parseJson("[".repeat(1_000_000), DEPTH)).toMatchObject({ ok: false, refusal: { field: "body" } });
});

test("a field's path has the usual notation and a limited length", () => {
  expect(fieldPath(["creates", 3, "bucket", "value"])).toBe("creates[3].bucket.value");
  expect(fieldPath([])).toBe("");
  expect(fieldPath(["x".repeat(1_000)]).length).toBeLessThan(70);
  expect(fieldPath(["\ud800"]).isWellFormed()).toBe(true);
});
