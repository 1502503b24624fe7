import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import {
  CANONICAL_VERSION,
  canonicalize,
  type CanonicalRefusal,
} from "../../../src/common/canonical/canonicalize.ts";
import { textTypeNames, ruleOf, type BucketTypeName } from "../../support/types.ts";
import { CODE_POINT_MAX, fullCaseFoldingRows } from "./unicode-data.ts";

const MAX_BYTES = 1_024;
const PATH_TYPES = ["ROUTES", "ORGANIZATION_PATH", "REDIRECT_ROUTES"] as const;

/** Returns the canonical form, or the refusal in angle brackets. */
function canon(type: BucketTypeName, value: string, maxBytes = MAX_BYTES): string {
  const result = canonicalize(ruleOf(type), value, maxBytes);
  return result.ok ? result.canonical : `<${result.refusal}>`;
}

function detailOf(type: BucketTypeName, value: string): string | undefined {
  const result = canonicalize(ruleOf(type), value, MAX_BYTES);
  return result.ok ? undefined : result.detail;
}

const utf8Bytes = (text: string) => new TextEncoder().encode(text).length;

const check = (property: fc.IProperty<[BucketTypeName, string]>) => fc.assert(property, { numRuns: 5_000 });

describe("any text", () => {
  const anyType = fc.constantFrom(...textTypeNames);
  // Characters that often cause errors: case, composition, width, order of marks, scripts, separators, lone
  // surrogates.
  const trouble = fc.constantFrom(
    ..."aAiIkKsSsß/.@ \u0130\u0131\u017f\u1e9e\u03a3\u03c3\u03c2",
    ..."\u212a\u212b\u00c5\ufb03\uff21\uff0e\uff0f\u2025\u2024\u3002",
    ..."\u0301\u0307\u0308\u030c\u0316\u0327\u0331\u0338\u0345\u0390",
    ..."\u1f80\u1fb3\u1fbc\u1fe3\u0149\u01f0\u0587\u1e96\u1e9a",
    ..."\u0430\u0410\u03b1\u6f22\u3042\u30a2\u3105\ud55c\u1100\u1161",
    ..."\u11a8\u3131\u00b5\u33a5\ufdfa\u200d\u202e\ufe0f\ufffe",
    ..."\u{1f600}\u{10400}\u{1e900}\u13a0\uab70\u1c90\u10d0\ua64a\u1c88\u{1d400}\u{2f800}\u{16fe4}\u0378",
    ..."\u043e\u0441\u0444\u0456\u04cf\u03bd\u0661\u06f2\u0e9a\u30ed\u30fc\u2010\u2019\u0254",
    "\ud83d",
    "\ude00",
    "..",
    "//",
    "ffi",
  );
  const anyText = fc.oneof(
    fc.array(fc.oneof(trouble, fc.string({ unit: "binary", minLength: 1, maxLength: 1 })), { maxLength: 20 }),
    fc.array(
      fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
      { maxLength: 30 },
    ),
    fc.array(trouble, { maxLength: 12 }),
  );
  const text = anyText.map((parts) => parts.join(""));

  it("is refused with a reason or has a canonical form within the limits, and never throws", () => {
    const refusals: CanonicalRefusal[] = ["empty", "too_long", "ill_formed", "control", "bidi", "zero_width"];
    refusals.push("private_use", "unassigned", "mixed_script", "bad_segment", "email", "restricted", "mark");
    refusals.push("space");
    check(
      fc.property(anyType, text, (type, value) => {
        const result = canonicalize(ruleOf(type), value, 48);
        if (result.ok) {
          expect(utf8Bytes(result.canonical)).toBeGreaterThan(0);
          expect(Math.max(utf8Bytes(value), utf8Bytes(result.canonical))).toBeLessThanOrEqual(48);
          expect(result.canonical.isWellFormed()).toBe(true);
        } else {
          expect(refusals).toContain(result.refusal);
          expect(result.detail).toMatch(/^[\x20-\x7e]+\.$/);
        }
      }),
    );
  });

  it("has a canonical form that is its own canonical form", () => {
    check(
      fc.property(anyType, text, (type, value) => {
        const first = canonicalize(ruleOf(type), value, 1 << 20);
        if (first.ok) expect(canonicalize(ruleOf(type), first.canonical, 1 << 20)).toEqual(first);
      }),
    );
  });

  it("has the same canonical form in each of its normal forms", () => {
    check(
      fc.property(anyType, text, (type, value) => {
        const typed = canonicalize(ruleOf(type), value, 1 << 20);
        if (!typed.ok) return;
        for (const form of ["NFC", "NFD", "NFKC", "NFKD"]) {
          expect(canonicalize(ruleOf(type), value.normalize(form), 1 << 20)).toEqual(typed);
        }
      }),
    );
  });

  it("has the same canonical form in each of its cases", () => {
    // A combining iota below a letter (U+0345) folds to a letter after it, and marks that follow then come
    // after that letter. Unicode defines it so. Spellings that differ only in this are different names, so
    // they are left out here.
    const pairs = fullCaseFoldingRows().filter(({ from }) => !from.normalize("NFD").includes("\u0345"));
    const cases = fc.constantFrom(...pairs.map(({ from, to }) => [from, to] as const));
    const part = fc.oneof(
      cases,
      trouble.filter((c) => c.normalize("NFD").indexOf("\u0345") < 0).map((c) => [c, c] as const),
    );
    const spellings = fc.array(part, { maxLength: 12 });
    fc.assert(
      fc.property(anyType, spellings, (type, parts) => {
        const [typed, other] = [0, 1].map((spelling) => parts.map((both) => both[spelling]).join(""));
        expect(canon(type, other ?? "", 1 << 20)).toBe(canon(type, typed ?? "", 1 << 20));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each(["EMAILS", "USERNAMES", "ROUTES"] as const)(
    "of one code point is refused or has a stable canonical form: %s",
    (type) => {
      const wrong: string[] = [];
      for (let codePoint = 0; codePoint <= CODE_POINT_MAX; codePoint += 1) {
        const result = canonicalize(ruleOf(type), String.fromCodePoint(codePoint), MAX_BYTES);
        if (!result.ok) continue;
        const again = canonicalize(ruleOf(type), result.canonical, MAX_BYTES);
        if (!again.ok || again.canonical !== result.canonical) wrong.push(codePoint.toString(16));
      }
      expect(wrong).toEqual([]);
    },
  );
});

describe("length", () => {
  it("must be from 1 byte to the limit, in UTF-8", () => {
    expect(canon("ROUTES", "")).toBe("<empty>");
    expect(canon("ROUTES", "a")).toBe("a");
    expect(canon("ROUTES", "A".repeat(1_024))).toBe("a".repeat(1_024));
    expect(canon("ROUTES", "a".repeat(1_025))).toBe("<too_long>");
    expect(canon("EMAILS", "\u00e9".repeat(512))).toBe("\u00e9".repeat(512));
    expect(canon("EMAILS", `${"\u00e9".repeat(512)}a`)).toBe("<too_long>");
    expect(canon("EMAILS", "\u{1f600}".repeat(256))).toBe("\u{1f600}".repeat(256));
    expect(canon("EMAILS", `${"\u{1f600}".repeat(256)}a`)).toBe("<too_long>");
  });

  it("is checked for the typed and for the canonical text", () => {
    // U+FDFA has 3 bytes, and 33 when normalized. Fullwidth letters have 3 bytes, and 1 when normalized.
    expect(utf8Bytes(canon("EMAILS", "\ufdfa".repeat(31)))).toBe(1_023);
    expect(canonicalize(ruleOf("EMAILS"), "\ufdfa".repeat(32), MAX_BYTES)).toEqual({
      ok: false,
      refusal: "too_long",
      detail: "The canonical form is longer than 1024 bytes of UTF-8.",
    });
    expect(canon("EMAILS", "\uff41".repeat(341))).toBe("a".repeat(341));
    expect(canon("EMAILS", "\uff41".repeat(342))).toBe("<too_long>");
  });
});

describe("characters that no name may contain", () => {
  it.each<[CanonicalRefusal, string, string]>([
    ["ill_formed", "lone surrogates", "\ud800 \udbff \udc00 \udfff"],
    [
      "control",
      "control characters and line separators",
      "\u0000 \u0009 \u000a \u001f \u007f \u0080 \u0085 \u009f \u2028 \u2029",
    ],
    [
      "bidi",
      "marks that change the direction of text",
      "\u061c \u200e \u200f \u202a \u202d \u202e \u2066 \u2069",
    ],
    [
      "zero_width",
      "spaces and joiners of zero width",
      "\u200b \u200c \u200d \u2060 \u2064 \ufeff \u00ad \u034f \u180e",
    ],
    ["zero_width", "fillers", "\u115f \u1160 \u3164 \uffa0 \u{16fe4}"],
    [
      "zero_width",
      "variation selectors and tags",
      "\ufe00 \ufe0f \u{e0100} \u{e01ef} \u{e0001} \u{e0061} \u180b",
    ],
    ["zero_width", "other formats", "\ufff9 \ufffb \u{13430} \u{1bca0} \u{1d173} \u206a"],
    ["zero_width", "characters that are blank", "\u1680 \u2800 \ufffc \u{13441} \u{13442} \u{1d159}"],
    [
      "zero_width",
      "joiners and modifiers of a script",
      "\u2d7f \u{1107f} \u{13440} \u{1bc9d} \u{1da9b} \u{1da9f} \u{1daa1} \u{1daaf}",
    ],
    ["private_use", "characters for private use", "\ue000 \uf8ff \u{f0000} \u{10fffd}"],
    ["unassigned", "code points that are not assigned", "\u0378 \u2fff \u31e5 \u{1fae9} \u{1c000} \u{2fffd}"],
    ["unassigned", "noncharacters", "\ufdd0 \ufdef \ufffe \uffff \u{1ffff} \u{10fffe} \u{10ffff}"],
  ])("%s: %s", (refusal, _, characters) => {
    for (const character of characters.split(" ")) {
      for (const type of textTypeNames) {
        for (const value of [character, `${character}a`, `a/\u00e9${character}`, `ab${character}c`]) {
          expect([value, canon(type, value)]).toEqual([value, `<${refusal}>`]);
        }
      }
    }
  });

  it("are named in the detail with their index in code points, without the value", () => {
    expect(detailOf("EMAILS", "secret\u0000")).toBe("U+0000 at index 6 is a control character.");
    expect(detailOf("EMAILS", "\u{1f600}\u{1f600}\u200b")).toBe("U+200B at index 2 is invisible.");
    expect(detailOf("EMAILS", "\u{1f600}\ud83d")).toBe("U+D83D at index 1 is a lone surrogate.");
    expect(detailOf("EMAILS", "a\u{10ffff}")).toBe("U+10FFFF at index 1 is not assigned in Unicode 15.0.0.");
    expect(detailOf("EMAILS", "a\ue000")).toBe(
      "U+E000 at index 1 is for private use, so a font may draw nothing.",
    );
    expect(detailOf("EMAILS", "a\u202e")).toBe("U+202E at index 1 changes the direction of text.");
    expect(detailOf("USERNAMES", "P\u0430ypal")).toBe(
      "U+0430 at index 1 of the canonical form has another script than the rest of its value.",
    );
    expect(detailOf("ROUTES", "secret//x//y")).toBe(
      'The path segment at index 7 of the canonical form is empty, "." or "..".',
    );
    expect(detailOf("ROUTES", "\u{1f600}/secret//x")).toBe(
      'The path segment at index 9 of the canonical form is empty, "." or "..".',
    );
  });
});

describe("folding", () => {
  it.each([
    ["ASCII", "GitLab-Org_42", "gitlab-org_42"],
    ["sharp s, small and capital", "Stra\u00dfe STRA\u1e9eE", "strasse strasse"],
    ["the Kelvin and angstrom signs", "\u212a\u212b", "k\u00e5"],
    ["ligatures", "o\ufb03ce", "office"],
    ["fullwidth letters and digits", "\uff21\uff42\uff11\uff20", "ab1@"],
    ["all three sigmas", "\u03a3\u03c3\u03c2", "\u03c3\u03c3\u03c3"],
    ["long s", "\u017f", "s"],
    ["composed and decomposed marks", "\u00c9E\u0301e\u0301", "\u00e9\u00e9\u00e9"],
    ["marks in either order", "a\u0323\u0307 a\u0307\u0323", "\u1ea1\u0307 \u1ea1\u0307"],
    ["Hangul composed of letters", "\u1112\u1161\u11ab", "\ud55c"],
    ["Cherokee, whose fold is the capital", "\uab70\u13a0", "\u13a0\u13a0"],
    [
      "combining iota and the letter iota",
      "\u1fb3\u1fbc\u03b1\u0345",
      "\u03b1\u03b9\u03b1\u03b9\u03b1\u03b9",
    ],
    ["spaces of other widths", "a\u00a0b\u3000c", "a b c"],
    ["emoji", "\u{1f600}\u{1f468}\u{1f3fd}", "\u{1f600}\u{1f468}\u{1f3fd}"],
  ])("of %s", (_, typed, canonical) => {
    expect(canon("EMAILS", typed)).toBe(canonical);
  });

  it("keeps the Turkish dotted and dotless i different from i in email addresses", () => {
    const forms = ["i", "\u0131", "\u0130"].map((i) => canon("EMAILS", i));
    expect(forms).toEqual(["i", "\u0131", "i\u0307"]);
  });
});

describe("mixed scripts", () => {
  it.each([
    ["Cyrillic a among Latin", "p\u0430ypal"],
    ["Greek o among Latin", "g\u03bfogle"],
    ["Greek and Cyrillic", "\u03b1\u0431"],
    ["a micro sign, which is Greek when normalized", "\u00b5torrent"],
    ["Latin, Hangul and kana", "a\ud55c\u30a2"],
    ["Hangul and kana", "\ud55c\u30a2"],
    ["Bopomofo and kana", "\u3105\u3042"],
    ["Latin and Hebrew", "a\u05d0"],
    ["digits do not hide it", "a1\u0430"],
  ])("are refused: %s", (_, value) => {
    expect(canon("USERNAMES", value)).toBe("<mixed_script>");
    for (const type of PATH_TYPES) expect(canon(type, `ok/${value}`)).toBe("<mixed_script>");
    expect(canonicalize(ruleOf("EMAILS"), value, MAX_BYTES).ok).toBe(true);
  });

  it.each([
    ["Cyrillic alone", "\u0434\u043e\u043c-42"],
    ["Latin with marks", "z\u00fcrich\u0323"],
    ["Japanese with Latin", "\u6f22\u3042\u30a2-x"],
    ["Chinese with Bopomofo and Latin", "\u6f22\u3105x"],
    ["Korean with Latin", "\ud55c\u6f22x"],
    ["Arabic with its digits", "\u0639\u0663"],
    ["only common characters", "42-_."],
  ])("are accepted: %s", (_, value) => {
    expect(canon("USERNAMES", value)).toBe(value.normalize("NFC"));
    for (const type of PATH_TYPES) expect(canon(type, value)).toBe(value.normalize("NFC"));
  });

  it("are checked per segment in paths, and per value in usernames", () => {
    const value = "\u0433\u0440\u0443\u043f\u043f\u0430/project";
    for (const type of PATH_TYPES) expect(canon(type, value)).toBe(value);
    expect(canon("USERNAMES", value)).toBe("<mixed_script>");
  });
});

describe("path segments", () => {
  it.each([
    ["empty", "/", "//", "/a", "a/", "a//b", "/\u00e9", "\u00e9/", "\u00e9//b"],
    ["dots", ".", "..", "./a", "a/.", "a/../b", "../\u00e9", "\u00e9/.", "\u00e9/../b"],
    [
      "produced by normalization",
      "\uff0e",
      "\u2024\u2024",
      "\u2025",
      "a\uff0f",
      "a/\uff0f",
      "\uff0fa",
      "a/\u2025/b",
      "\u2024/a",
    ],
  ])("are refused when %s", (_, ...values) => {
    for (const value of values) {
      for (const type of PATH_TYPES) expect([value, canon(type, value)]).toEqual([value, "<bad_segment>"]);
      expect(canonicalize(ruleOf("USERNAMES"), value, MAX_BYTES).ok).toBe(true);
    }
  });

  it.each([["a/b"], ["..."], [".a"], ["a."], ["..a/b.."], [".git/\u00e9"], ["a/\u00e9/..."]])(
    "are accepted: %s",
    (value) => {
      for (const type of PATH_TYPES) expect(canon(type, value)).toBe(value);
    },
  );

  it("are the same with every look-alike of a slash", () => {
    expect(canon("ROUTES", "A\uff0fB")).toBe("a/b");
    expect(canon("ROUTES", "\u2100")).toBe("a/c"); // the sign "account of"
  });

  it("are checked after the characters, also in ASCII, so the reason does not depend on the rest", () => {
    expect(canon("ROUTES", "a//\u200b")).toBe("<zero_width>");
    expect(canon("ROUTES", "a//\u0000")).toBe("<control>");
  });
});

it("is version 1", () => {
  expect(CANONICAL_VERSION).toBe(1);
});
