/** Tests the edges of the two loops over code units, one by one. */
import { expect, test } from "vitest";
import { canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import { utf8Length } from "../../../src/common/canonical/characters.ts";
import { ruleOf } from "../../support/types.ts";

test("the canonical form of a printable ASCII character is the character in lower case", () => {
  for (let unit = 0x21; unit < 0x7f; unit += 1) {
    const value = String.fromCharCode(unit);
    if (value === "/" || value === ".") continue;
    expect(canonicalize(ruleOf("ROUTES"), value, 1)).toEqual({ ok: true, canonical: value.toLowerCase() });
  }
});

test("a space is accepted between two characters only", () => {
  const accepted = (type: "ROUTES" | "USERNAMES" | "EMAILS", value: string) =>
    canonicalize(ruleOf(type), value, 100).ok;
  for (const type of ["ROUTES", "USERNAMES", "EMAILS"] as const) {
    for (const letter of ["a", "\u00e9"]) {
      for (const value of [` ${letter}`, `${letter} `, " ", "  ", `\u00a0${letter}`])
        expect([type, value, accepted(type, value)]).toEqual([type, value, false]);
      expect([type, accepted(type, `${letter} ${letter}`)]).toEqual([type, true]);
      expect([type, accepted(type, `${letter}  ${letter}`)]).toEqual([type, type === "EMAILS"]);
      expect([type, accepted(type, `${letter} /${letter}`)]).toEqual([type, type !== "ROUTES"]);
      expect([type, accepted(type, `${letter}/ ${letter}`)]).toEqual([type, type !== "ROUTES"]);
    }
  }
});

test("the first of several bad segments is named, wherever it is", () => {
  for (const [value, index] of [
    ["/a//b", 0],
    ["/a/", 0],
    ["a//b/", 2],
    ["a/b/", 4],
    ["a/../b", 2],
  ] as const) {
    expect(canonicalize(ruleOf("ROUTES"), value, 100)).toMatchObject({
      ok: false,
      refusal: "bad_segment",
      detail: expect.stringContaining(`at index ${index} `) as unknown,
    });
  }
});

test("the length in UTF-8 equals the platform's, on both sides of each edge", () => {
  for (const edge of [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff]) {
    const text = `a${String.fromCodePoint(edge)}b`;
    expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
  }
});
