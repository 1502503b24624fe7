import { describe, expect, test } from "vitest";
import { fieldPath, parseJson } from "../../../src/coordinator/api/json.ts";
import type { Bounds } from "../../../src/coordinator/api/list-limits.ts";

const DEPTH = 8;
const bounds = (items: Record<string, number> = {}, values = 1_000): Bounds => ({
  depth: DEPTH,
  values,
  items: (path) => (items[path] === undefined ? undefined : { most: items[path] }),
});
const fieldIn = (text: string): string | undefined => {
  const result = parseJson(text, bounds());
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
  "1.0",
  "-0",
  "0e9999",
  "120e-1",
  "0.0012E+4",
  "9007199254740991",
  "9.007199254740991e15",
  "[-9007199254740991,9007199254740992,9007199254740993,0.1,1.5,1e400]",
])("%s gives the same value as JSON.parse", (text) => {
  expect(parseJson(text, bounds())).toEqual({ ok: true, value: JSON.parse(text) });
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
    ['{"a":9007199254740991.4}', "a"],
    ['{"a":[1,{"b":-9007199254740990.6}]}', "a[1].b"],
    ['{"a":1.0000000000000000001}', "a"],
    ['{"a":1e-400}', "a"],
    ["0.00000000000000000000000000000000001e1 ", undefined],
    ["4503599627370497.000000001", "body"],
    [`[1e-${"9".repeat(100_000)}]`, "[0]"],
  ])("the rounded number in %s", (text, field) => expect(fieldIn(text)).toBe(field));

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
  expect(parseJson("[".repeat(levels) + "]".repeat(levels), bounds()).ok).toBe(fits);
  expect(parseJson('{"a":'.repeat(levels) + "1" + "}".repeat(levels), bounds()).ok).toBe(fits);
});

// The texts end in something that is not JSON, so the refusals show that nothing after the excess was read.
describe("is refused at the first excess of", () => {
  const TAIL = "] not JSON";
  const refused = (text: string, given: Bounds): unknown => {
    const result = parseJson(text, given);
    return result.ok ? result.value : result.refusal;
  };

  test.each([
    ["a list", '{"a":[{},{},{},', { a: 2 }, "a[2]"],
    ["a list of scalars", '{"a":[1,2,3,', { a: 2 }, "a[2]"],
    ["a list in items of a list", '{"a":[{"b":[1]},{"b":[1,2,', { a: 9, "a[].b": 1 }, "a[1].b[1]"],
  ])("%s", (_, text, items, field) => {
    const bound = Object.values(items).at(-1);
    expect(refused(text + TAIL, bounds(items))).toMatchObject({
      code: "INVALID_ARGUMENT",
      field,
      detail: `\`${field}\` is beyond the limit of ${bound} items in one list; send fewer`,
    });
  });

  test("as many items as allowed", () => {
    expect(parseJson('{"a":[1,2]}', bounds({ a: 2 }))).toEqual({ ok: true, value: { a: [1, 2] } });
  });

  test.each([
    ["fields of an object", '{"a":1,"b":2,"c":3,', "c"],
    ["items of an undeclared list", '{"z":[1,2,3,', "z[2]"],
    ["empty lists", '{"z":[[],[],[],', "z[1]"],
  ])("values altogether, in %s", (_, text, field) => {
    expect(refused(text + TAIL, bounds({}, 4))).toMatchObject({
      field,
      detail: `\`${field}\` is beyond the limit of 4 fields and items in one body; send fewer`,
    });
  });
});

test("a megabyte of brackets is refused without being parsed", () => {
  expect(parseJson("[".repeat(1_000_000), bounds())).toMatchObject({ ok: false, refusal: { field: "body" } });
});

test("a field's path has the usual notation and a limited length", () => {
  expect(fieldPath(["creates", 3, "bucket", "value"])).toBe("creates[3].bucket.value");
  expect(fieldPath([])).toBe("");
  expect(fieldPath(["x".repeat(1_000)]).length).toBeLessThan(70);
  expect(fieldPath(["\ud800"]).isWellFormed()).toBe(true);
});
