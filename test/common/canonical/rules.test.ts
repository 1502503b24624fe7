/** Tests of the rules that a deployment may declare: every combination of form, script, case and bounds. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalize, type CanonicalRefusal } from "../../../src/common/canonical/canonicalize.ts";
import { firstRefusedCharacter } from "../../../src/common/canonical/characters.ts";
import { caseFold } from "../../../src/common/canonical/fold.ts";
import type { CanonicalRule } from "../../../src/common/canonical/rule.ts";
import { acceptedCharacters, CODE_POINT_MAX, fullCaseFoldingRows } from "./unicode-data.ts";

const MAX_BYTES = 1_024;
const plain: CanonicalRule = { form: "plain", script: "single", case: "folded" };
const exact: CanonicalRule = { ...plain, case: "exact" };

const rules: CanonicalRule[] = (["plain", "path", "email"] as const).flatMap((form) =>
  (["single", "any"] as const).flatMap((script) =>
    (["folded", "exact"] as const)
      .filter((letters) => form !== "email" || letters === "folded")
      .map((letters) => ({ form, script, case: letters })),
  ),
);

/** Returns the canonical form, or the refusal in angle brackets. */
function canon(rule: CanonicalRule, value: string, maxBytes = MAX_BYTES): string {
  const result = canonicalize(rule, value, maxBytes);
  return result.ok ? result.canonical : `<${result.refusal}>`;
}

function detailOf(rule: CanonicalRule, value: string): string | undefined {
  const result = canonicalize(rule, value, MAX_BYTES);
  return result.ok ? undefined : result.detail;
}

describe("any rule", () => {
  const patterns = [".*", "[a-z]+", "[A-Za-z0-9/._-]+", "\\p{L}.*", "(?s).{1,40}", "[^@]+@[^@]+", "\\P{Lu}*"];
  const bound = fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined });
  const anyRule: fc.Arbitrary<CanonicalRule> = fc
    .record({
      base: fc.constantFrom(...rules),
      pattern: fc.option(fc.constantFrom(...patterns), { nil: undefined, freq: 1 }),
      minLength: bound,
      maxLength: bound,
    })
    .map(({ base, pattern, minLength, maxLength }) => ({
      ...base,
      ...(pattern === undefined ? {} : { pattern }),
      ...(minLength === undefined ? {} : { minLength }),
      ...(maxLength === undefined ? {} : { maxLength }),
    }));
  // Case, composition, width, marks, look-alikes, separators and characters that are refused.
  const trouble = fc.constantFrom(
    ..."aAiIkKoOsSzZ019-_./@ \u00df\u1e9e\u0130\u0131\u017f\u212a\u212b\u00c5\u00e9\u00c9\u01f0\u0390",
    ..."\u03a3\u03c3\u03c2\u0301\u0307\u0323\u0345\ufb03\uff21\uff41\uff0e\uff0f\u2025\u24b6\u216b\u1fb3",
    ..."\u0430\u0410\u043e\u041e\u0441\u0421\u0456\u0406\u03bf\u039f\u6f22\u30ab\u30ed\u10d0\u1c90\ufdfa",
    ..."\u{1f600}\u{1d400}\u{10400}\u0000\u200b\u202e\u0378\ud83d",
    "..",
    "//",
  );
  const part = fc.oneof(
    { weight: 4, arbitrary: trouble },
    { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 1 }) },
    { weight: 2, arbitrary: fc.stringMatching(/^[A-Za-z0-9]{1,6}$/) },
  );
  const text = fc.array(part, { maxLength: 10 }).map((parts) => parts.join(""));

  test("gives canonical text itself as its canonical form", () => {
    let changed = 0;
    fc.assert(
      fc.property(anyRule, text, (rule, value) => {
        const first = canonicalize(rule, value, MAX_BYTES);
        if (!first.ok) return;
        if (first.canonical !== value) changed += 1;
        expect(canonicalize(rule, first.canonical, MAX_BYTES)).toEqual(first);
      }),
      { numRuns: 20_000 },
    );
    expect(changed).toBeGreaterThan(300);
  });

  test("gives the normal forms of a text the same canonical form", () => {
    fc.assert(
      fc.property(anyRule, text, (rule, value) => {
        const typed = canonicalize(rule, value, 1 << 20);
        if (!typed.ok) return;
        for (const form of ["NFC", "NFD", "NFKC", "NFKD"])
          expect(canonicalize(rule, value.normalize(form), 1 << 20)).toEqual(typed);
      }),
      { numRuns: 5_000 },
    );
  });

  test("refuses every character that no name may contain, with the same reason", () => {
    const everything: CanonicalRule[] = rules.map((rule) => ({ ...rule, pattern: "(?s).*" }));
    const wrong: string[] = [];
    const refusals = new Set<CanonicalRefusal>();
    for (let codePoint = 0; codePoint <= CODE_POINT_MAX; codePoint += 1) {
      const character = String.fromCodePoint(codePoint);
      const expected = firstRefusedCharacter(character)?.refusal;
      if (expected === undefined) continue;
      refusals.add(expected);
      // The supplementary planes are mostly unassigned, so each of their code points has one rule.
      const isMany = codePoint > 0xffff && expected === "unassigned";
      for (const rule of isMany ? [everything[codePoint % everything.length] ?? plain] : everything)
        if (canon(rule, `A${character}b`) !== `<${expected}>`) wrong.push(codePoint.toString(16));
    }
    expect(wrong).toEqual([]);
    expect(refusals).toEqual(
      new Set(["ill_formed", "control", "bidi", "zero_width", "private_use", "unassigned"]),
    );
  });

  test("refuses text that is empty or too long, whatever lengths it declares", () => {
    for (const base of rules)
      for (const rule of [base, { ...base, minLength: 1, maxLength: 65_536, pattern: ".*" }]) {
        expect(canon(rule, "")).toBe("<empty>");
        expect(canon(rule, "a".repeat(MAX_BYTES))).toBe("a".repeat(MAX_BYTES));
        expect(canon(rule, "a".repeat(MAX_BYTES + 1))).toBe("<too_long>");
        expect(canon(rule, "\u00e9".repeat(MAX_BYTES / 2 + 1))).toBe("<too_long>");
      }
  });

  test("refuses a space at an edge, and in names of one script two in a row", () => {
    for (const rule of rules) {
      for (const value of [" a", "a ", " ", "\u00a0a", "a\u3000"]) expect(canon(rule, value)).toBe("<space>");
      expect(canon(rule, "a b")).toBe("a b");
      expect(canon(rule, "a  b")).toBe(rule.script === "single" ? "<space>" : "a  b");
      expect(canon(rule, "a /b")).toBe(rule.form === "path" ? "<space>" : "a /b");
    }
  });
});

describe("form", () => {
  test("`path` refuses segments that are empty, `.` or `..`, and other forms accept them", () => {
    for (const rule of rules)
      for (const value of ["a//b", "/a", "a/", "a/./b", "a/../b", "..", "\u00e9//\u00e9", "a/\u2025/b"]) {
        const isAscii = !value.includes("\u00e9");
        const isAllowed =
          rule.form !== "path" && (isAscii || rule.script === "any" || rule.case === "folded");
        expect([rule, value, canon(rule, value).startsWith("<")]).toEqual([rule, value, !isAllowed]);
      }
  });

  test("`path` compares scripts per segment, and `plain` in the whole value", () => {
    const value = "\u0434\u043e\u043c/house";
    expect(canon({ ...plain, form: "path" }, value)).toBe(value);
    expect(canon(plain, value)).toBe("<mixed_script>");
  });
});

describe("script", () => {
  test("`any` accepts what people cannot compare by eye, and keeps it apart", () => {
    for (const letters of ["folded", "exact"] as const) {
      const any = { ...plain, script: "any", case: letters } as const;
      const values = ["p\u0430ypal", "paypal", "\u2764", "\u{1f600}", "a\u2013b", "1\u0301", "\u20ac"];
      expect(values.map((value) => canon(any, value))).toEqual(values);
    }
  });

  test("`single` makes look-alikes one name", () => {
    expect(canon(plain, "\u0441\u043e\u0441\u043e")).toBe("coco");
    expect(canon(plain, "\u0578\u0585")).toBe("no");
    expect(canon(plain, "a\u2010b")).toBe("a-b");
    expect(canon(plain, "p\u0430ypal")).toBe("<mixed_script>");
  });
});

describe("case", () => {
  test("`Ada` and `ada` are two names if it is exact, and one if it is folded", () => {
    for (const rule of rules) {
      const isExact = rule.case === "exact";
      expect([canon(rule, "Ada"), canon(rule, "ADA"), canon(rule, "ada")]).toEqual(
        isExact ? ["Ada", "ADA", "ada"] : ["ada", "ada", "ada"],
      );
      if (isExact && rule.script === "single") continue;
      expect(canon(rule, "Ada/\u6f22")).toBe(isExact ? "Ada/\u6f22" : "ada/\u6f22");
    }
  });

  test("exact ASCII is its own canonical form", () => {
    fc.assert(
      fc.property(fc.constantFrom(...rules), fc.stringMatching(/^[!-~]{1,30}$/), (rule, value) => {
        const canonical = canon(rule, value);
        if (canonical === "<bad_segment>" || canonical === "<email>") return;
        expect(canonical).toBe(rule.case === "exact" ? value : value.toLowerCase());
      }),
      { numRuns: 2_000 },
    );
  });

  test("exact text is only normalized if its script may be any", () => {
    const any: CanonicalRule = { ...exact, script: "any" };
    expect(canon(any, "Stra\u00dfe \u00c9 \u03a3\u03c2 \u0130")).toBe(
      "Stra\u00dfe \u00c9 \u03a3\u03c2 \u0130",
    );
    expect(canon(any, "E\u0301\ufb03\uff21\u212a")).toBe("\u00c9ffiAK");
  });

  test("names that are the same exactly are also the same when folded", () => {
    const some = fc.constantFrom(
      ..."aAbBkKoO1-\u00e9\u00c9\u0301\u212a\uff21\u0430\u0441\u0421\u043e\u03bf\u0131",
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...rules.filter((rule) => rule.case === "exact")),
        fc.array(some, { minLength: 1, maxLength: 8 }).map((parts) => parts.join("")),
        (rule, value) => {
          const canonical = canonicalize(rule, value, MAX_BYTES);
          if (!canonical.ok) return;
          const folded: CanonicalRule = { ...rule, case: "folded" };
          expect(canon(folded, canonical.canonical)).toBe(canon(folded, value));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  const capitals = fullCaseFoldingRows()
    .map(({ from }) => from)
    .filter((from) => from > "\u007f" && from.normalize("NFKC") === from && /\p{Lu}/u.test(from));

  test("exact names of one script are in ASCII, and the refusal says so", () => {
    const rule = { ...exact, form: "path" } as const;
    // A call of `expect` for each of the values would take ten seconds.
    const others: string[] = [];
    for (const character of acceptedCharacters()) {
      const normal = character.normalize("NFKC").normalize("NFC");
      if (normal.length === 0 || [...normal].some((each) => each <= "\u007f")) continue;
      for (const value of [`${character}a`, `x/${character}`])
        if (canon(rule, value) !== "<not_ascii>") others.push(value);
    }
    expect(others).toEqual([]);
    // Wide letters are normalized first.
    expect(canon(exact, "\uff21\uff22c")).toBe("ABc");
    expect(detailOf(exact, "a\u00df")).toBe(
      "U+00DF at index 1 of the canonical form is outside of ASCII, " +
        "where names cannot tell capitals from their look-alikes.",
    );
  });

  test("exact names of any script may have them, and folded names too", () => {
    for (const capital of capitals) {
      expect(canon({ ...exact, script: "any" }, capital)).toBe(capital);
      expect(canon({ ...plain, script: "any" }, capital)).toBe(caseFold(capital).normalize("NFC"));
    }
  });
});

describe("lengths", () => {
  const between = (minLength: number, maxLength: number): CanonicalRule => ({
    ...plain,
    minLength,
    maxLength,
  });

  test("are counted in characters of the canonical form", () => {
    const rule: CanonicalRule = { ...between(2, 3), script: "any" };
    expect(["a", "ab", "abc", "abcd"].map((value) => canon(rule, value))).toEqual([
      "<length>",
      "ab",
      "abc",
      "<length>",
    ]);
    // One typed character becomes three.
    expect(canon(rule, "\ufb03")).toBe("ffi");
    expect(canon(rule, "\ufb03x")).toBe("<length>");
    // Two typed characters become one.
    expect(canon(rule, "e\u0301")).toBe("<length>");
    expect(canon(rule, "e\u0301e\u0301e\u0301")).toBe("\u00e9\u00e9\u00e9");
    // A character outside of the first plane takes two units in UTF-16.
    expect(canon(rule, "\u{1f600}")).toBe("<length>");
    expect(canon(rule, "\u{1f600}".repeat(3))).toBe("\u{1f600}".repeat(3));
    expect(canon(rule, "\u{1f600}".repeat(4))).toBe("<length>");
  });

  test("may be only one of the two, or the same", () => {
    expect(canon({ ...plain, minLength: 3 }, "ab")).toBe("<length>");
    expect(canon({ ...plain, minLength: 3 }, "a".repeat(1_000))).toBe("a".repeat(1_000));
    expect(canon({ ...plain, maxLength: 3 }, "abcd")).toBe("<length>");
    expect(canon({ ...plain, maxLength: 3 }, "a")).toBe("a");
    expect(canon(between(3, 3), "abc")).toBe("abc");
  });

  test("are those of the whole path", () => {
    expect(canon({ ...between(3, 3), form: "path" }, "a/b")).toBe("a/b");
    expect(canon({ ...between(3, 3), form: "path" }, "a/bc")).toBe("<length>");
  });

  test("are told in the detail, without the value", () => {
    expect(detailOf(between(3, 4), "Xy")).toBe(
      "The canonical form has 2 characters; this type allows at least 3.",
    );
    expect(detailOf(between(3, 4), "Secret")).toBe(
      "The canonical form has 6 characters; this type allows at most 4.",
    );
  });
});

describe("a pattern", () => {
  const matching = (pattern: string, more: Partial<CanonicalRule> = {}): CanonicalRule => ({
    ...plain,
    ...more,
    pattern,
  });

  test("must match the whole canonical form", () => {
    const rule = matching("[a-z][a-z0-9]*");
    expect(["ada", "Ada", "a1", "1a", "a-b", "ada!", "!ada"].map((value) => canon(rule, value))).toEqual([
      "ada",
      "ada",
      "a1",
      "<pattern>",
      "<pattern>",
      "<pattern>",
      "<pattern>",
    ]);
    expect(canon(matching("a|ab"), "ab")).toBe("ab");
    expect(canon(matching("b"), "abc")).toBe("<pattern>");
    expect(canon(matching("^a$"), "a")).toBe("a");
  });

  test("is compared with the canonical form, not with what was typed", () => {
    expect(canon(matching("[a-z]+", { case: "exact" }), "Ada")).toBe("<pattern>");
    expect(canon(matching("[A-Z][a-z]+", { case: "exact" }), "Ada")).toBe("Ada");
    expect(canon(matching("[A-Z][a-z]+"), "Ada")).toBe("<pattern>");
    expect(canon(matching("[a-z]+"), "\uff21\ufb03\u0131")).toBe("affii");
  });

  test("compares characters, also outside of the first plane, and classes of Unicode", () => {
    const any = { script: "any" } as const;
    expect(canon(matching(".", any), "\u{1f600}")).toBe("\u{1f600}");
    expect(canon(matching(".", any), "\u{1f600}a")).toBe("<pattern>");
    expect(canon(matching("\\p{Greek}+", any), "\u03b1\u03b2\u03b3")).toBe("\u03b1\u03b2\u03b3");
    expect(canon(matching("\\p{Greek}+", any), "abc")).toBe("<pattern>");
  });

  test("is that of the whole path", () => {
    const rule = matching("[a-z]+(?:/[a-z]+)?", { form: "path" });
    expect(["a", "a/b", "a/b/c"].map((value) => canon(rule, value))).toEqual(["a", "a/b", "<pattern>"]);
  });

  test("is checked after everything else, and told in the detail, without the value", () => {
    const rule = matching("[a-z]+", { maxLength: 3 });
    expect(canon(rule, "1234")).toBe("<length>");
    expect(canon(rule, "12\u200b")).toBe("<zero_width>");
    expect(detailOf(rule, "123")).toBe("The canonical form does not match the type's pattern, [a-z]+.");
  });
});
