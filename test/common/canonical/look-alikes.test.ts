import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import { caseFold } from "../../../src/common/canonical/fold.ts";
import { nameKind } from "../../../src/common/canonical/name-faults.ts";
import { isInScript } from "../../../src/common/canonical/scripts.ts";
import { textTypeNames, ruleOf, type BucketTypeName } from "../../support/types.ts";
import { acceptedCharacters, skeletonOf } from "./unicode-data.ts";

const MAX_BYTES = 1_024;
const nameTypes = textTypeNames.filter((type) => ruleOf(type).script === "single");
const otherTypes = textTypeNames.filter((type) => ruleOf(type).script === "any");

/** Returns the canonical form, or the refusal in angle brackets. */
function canon(type: BucketTypeName, value: string): string {
  const result = canonicalize(ruleOf(type), value, MAX_BYTES);
  return result.ok ? result.canonical : `<${result.refusal}>`;
}

function detailOf(value: string): string | undefined {
  const result = canonicalize(ruleOf("USERNAMES"), value, MAX_BYTES);
  return result.ok ? undefined : result.detail;
}

const skeleton = skeletonOf();

/** The characters that canonical names consist of, except those of ASCII and the syllables of Hangul. */
const canonicalCharacters = [...acceptedCharacters()].filter(
  (character) =>
    character > "\u007f" &&
    nameKind(character.codePointAt(0) ?? 0) !== "restricted" &&
    !/\p{sc=Hangul}/u.test(character) &&
    character.normalize("NFKC") === character &&
    caseFold(character) === character,
);

describe("names that look the same are one name", () => {
  it.each([
    ["Cyrillic and Latin", "\u0441\u043e\u0441\u043e", "coco"],
    ["Cyrillic capitals and Latin capitals", "\u041c\u041e\u0421\u041a\u0412\u0410", "MOCKBA"],
    ["Greek and Latin", "\u03a1\u0391\u03a1\u0391", "PAPA"],
    ["Armenian and Latin", "\u0578\u0585", "no"],
    ["Greek with accents and Latin with accents", "\u03ac\u03bf", "\u00e1o"],
    ["Cyrillic and Latin with accents", "\u0451\u0436\u0451".replace("\u0436", "\u0445"), "\u00ebx\u00eb"],
    ["Cyrillic and Greek", "\u0444\u043e\u043f", "\u03c6\u03bf\u03c0"],
    ["Kannada and Telugu", "\u0c85\u0cb2", "\u0c05\u0c32"],
    ["Lao and Thai", "\u0e9a\u0e9b", "\u0e1a\u0e1b"],
    ["Katakana and Han", "\u30ed\u30fc\u30ab", "\u53e3\u4e00\u529b"],
    ["Katakana and Hiragana", "\u30d8\u30d9", "\u3078\u3079"],
    ["the dotless i of Turkish", "g\u0131tlab", "gitlab"],
    ["the capital dotted I of Turkish", "\u0130stanbul", "istanbul"],
    ["i with another dot", "g\u0069\u0307tlab", "gitlab"],
    ["i with another dot below another mark", "g\u0069\u0331\u0307tlab", "g\u0069\u0331tlab"],
    ["ligatures that are letters", "\u0153uvre-\u00e6on", "oeuvre-aeon"],
    ["the hyphen and the hyphen of ASCII", "a\u2010b", "a-b"],
    ["the dots between words", "a\u30fbb", "a\u00b7b"],
    ["apostrophes", "o\u2019neil o\u02bcneil", "o'neil o'neil"],
    ["the digits of Persian and of Arabic", "\u0639\u06f2", "\u0639\u0662"],
    ["digits that look like those of ASCII", "\u0995\u09ea", "\u09958"],
  ])("%s", (_, one, other) => {
    for (const type of nameTypes) {
      expect(canon(type, one)).not.toMatch(/^</);
      expect([type, canon(type, one)]).toEqual([type, canon(type, other)]);
      expect(canon(type, `x-${one}`.slice(2))).toBe(canon(type, other));
    }
    for (const type of otherTypes) expect(canon(type, one)).not.toBe(canon(type, other));
  });

  it("per segment of a path", () => {
    expect(canon("ROUTES", "\u0441\u043e\u0441\u043e/\u0434\u043e\u043c/\u0440\u0430\u0440\u0430")).toBe(
      "coco/\u0434\u043e\u043c/papa",
    );
  });

  it("for every character that looks like ASCII text", () => {
    const different = canonicalCharacters
      .filter((character) => /^[!-~]+$/.test(skeleton(character)))
      .map((character) => [character, skeleton(character), canon("USERNAMES", character)] as const)
      .filter(([, ascii, canonical]) => canonical !== ascii);
    // Slashes, backslashes and dots would change a path. Digits are read as digits, and two quotes as one.
    // The others look like capitals.
    expect(different.map(([character]) => character).toSorted()).toEqual([
      ..."\u05f2\u05f4\u0660\u0661\u0667\u06f0\u06f1\u06f7\u09e6\u0b20\u0b66",
      ..."\u1200\u12d0\u3007\u30ce\u4e36\u4e3f",
    ]);
    const asCapitals = different.filter(([, ascii, canonical]) => canonical === ascii.toLowerCase());
    expect(asCapitals.map(([character]) => character).toSorted()).toEqual([
      ..."\u0667\u06f7\u0b20\u1200\u12d0",
    ]);
  });

  it("for every small letter of Cyrillic and Greek whose capital looks like a capital of ASCII", () => {
    const different = canonicalCharacters
      .filter((character) => /[\p{sc=Cyrl}\p{sc=Grek}]/u.test(character))
      .map(
        (character) => [character, skeleton(character.toUpperCase()), canon("USERNAMES", character)] as const,
      )
      .filter(([, capital]) => /^[A-Z]$/.test(capital))
      .filter(([, capital, canonical]) => canonical !== capital.toLowerCase());
    // The small letters look like v and u, and their capitals like N and Y.
    expect(different.map(([character]) => character)).toEqual(["\u03bd", "\u03c5"]);
  });
});

describe("names that only look similar to readers of the script are different names", () => {
  it.each([
    ["rn and m", "corn", "com"],
    ["zero and o", "g00gle", "google"],
    ["one, l and I", "paypa1", "paypal"],
    ["ASCII in names of other scripts", "caf\u00e90", "caf\u00e9o"],
    ["accents", "jos\u00e9", "jose"],
    ["letters of Thai", "\u0e15\u0e32", "\u0e14\u0e32"],
    ["Han characters", "\u58eb", "\u571f"],
    ["Cyrillic with a letter that looks like no Latin one", "\u0433\u0440\u0443\u043f\u043f\u0430", "rpynna"],
  ])("%s", (_, one, other) => {
    for (const type of nameTypes) {
      expect(canon(type, one)).not.toMatch(/^</);
      expect(canon(type, one)).not.toBe(canon(type, other));
    }
  });

  it("and ASCII only changes its case", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[!-~]{1,30}$/), (value) => {
        for (const type of nameTypes) {
          const canonical = canon(type, value);
          if (canonical !== "<bad_segment>") expect(canonical).toBe(value.toLowerCase());
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("ordinary names of many languages are accepted", () => {
  it.each([
    ["Arabic", "\u0645\u062d\u0645\u062f"],
    ["Armenian", "\u0540\u0561\u0575\u056f"],
    ["Bengali", "\u09b0\u09b9\u09bf\u09ae"],
    ["Chinese", "\u5f20\u4f1f"],
    ["French", "fran\u00e7oise-h\u00e9l\u00e8ne"],
    ["Georgian", "\u10d2\u10d8\u10dd\u10e0\u10d2\u10d8"],
    ["German", "m\u00fcller"],
    ["Greek", "\u0393\u03b9\u03ce\u03c1\u03b3\u03bf\u03c2"],
    ["Guarani, whose g\u0303 has no composed form", "g\u0303uarani"],
    ["Hebrew", "\u05d3\u05d5\u05d3"],
    ["Hindi", "\u0930\u093e\u092e"],
    ["Japanese", "\u3055\u304f\u3089\u30b5\u30af\u30e9\u685c"],
    ["Khmer", "\u179f\u17bb\u1781"],
    ["Korean", "\uae40\ubbfc\uc900"],
    ["Russian", "\u0414\u043c\u0438\u0442\u0440\u0438\u0439"],
    ["Tamil", "\u0b95\u0bae\u0bb2\u0bbe"],
    ["Thai", "\u0e2a\u0e21\u0e0a\u0e32\u0e22"],
    ["Tibetan", "\u0f56\u0f66\u0f92\u0fb2\u0f74\u0f56\u0f66"],
    ["Turkish", "\u0130brahim"],
    ["Vietnamese", "Nguy\u1ec5n"],
  ])("%s", (_, value) => {
    for (const type of textTypeNames) expect(canon(type, value)).not.toMatch(/^</);
  });
});

describe("characters and marks that names may not contain", () => {
  it.each([
    ["a look-alike of a slash", "restricted", "a\u2044b", "a\u2215b", "\u00bd"],
    ["a symbol or an emoji", "restricted", "\u2764", "\u{1f389}", "a\u00a9", "\u{1f44d}\u{1f3fd}"],
    ["another dash", "restricted", "a\u2013b", "a\u2014b", "a\u2212b"],
    ["a letter of a historic or rarely used script", "restricted", "\u{10330}", "\u13a0", "\u{1e922}"],
    ["a phonetic letter", "restricted", "\u0251", "\u0261it"],
    ["a mark that lies over the letter", "restricted", "a\u0338", "t\u0335", "l\u0336"],
    ["a mark that is not recommended", "restricted", "a\u0332", "a\u0305", "a\u20dd"],
    ["a mark on no letter", "mark", "\u0301a", "1\u0301", "_\u0331", "a-\u0308"],
    ["the same mark twice", "mark", "x\u0301\u0301", "\u00e9\u0323\u0323"],
    ["five marks", "mark", "x\u0323\u0331\u0301\u0302\u0303"],
    ["l with the dot of i", "mark", "l\u0307stanbul"],
  ] as const)("%s", (_, refusal, ...values) => {
    for (const value of values) {
      for (const type of nameTypes) expect([value, canon(type, value)]).toEqual([value, `<${refusal}>`]);
      for (const type of otherTypes) expect([value, canon(type, value)]).not.toEqual([value, `<${refusal}>`]);
    }
  });

  it("are named with their code point", () => {
    expect(detailOf("secret\u2801")).toBe(
      "U+2801 at index 6 of the canonical form is not allowed in names: Unicode 15.0.0 restricts it.",
    );
    expect(detailOf("secret1\u0301")).toBe(
      "U+0301 at index 7 of the canonical form is a mark that readers may overlook, or not on a letter.",
    );
    expect(detailOf("sec  ret")).toBe(
      "The space at index 3 of the canonical form does not separate two words.",
    );
  });

  it("do not include four different marks, or a mark repeated on another letter", () => {
    expect(canon("USERNAMES", "x\u0323\u0331\u0301\u0302")).toBe("x\u0323\u0331\u0301\u0302");
    expect(canon("USERNAMES", "x\u0301x\u0301")).toBe("x\u0301x\u0301");
  });
});

describe("the tables", () => {
  it("allow the characters that Unicode 15.0 allows in identifiers", () => {
    // The Inclusion characters of UTS #39, which are allowed between words.
    const inclusion = "\u00b7\u0375\u058a\u05f3\u05f4\u06fd\u06fe\u0f0b\u2010\u2019\u2027\u30a0\u30fb";
    const wrong = canonicalCharacters.filter((c) => !/\p{XID_Continue}/u.test(c) && !inclusion.includes(c));
    expect(wrong).toEqual([]);
    // IdentifierStatus.txt has two more, which lie over a letter: U+0335 and U+0338.
    expect(canonicalCharacters).toHaveLength(100_252);
  });

  it("know the marks, and the letters with a dot, as the runtime does", () => {
    const wrong = canonicalCharacters.filter((character) => {
      const kind = nameKind(character.codePointAt(0) ?? 0);
      if (/\p{Mn}/u.test(character)) return kind !== "mark";
      if (/\p{Soft_Dotted}/u.test(character)) return kind !== "dotted";
      return kind !== (/[\p{L}\p{Mc}]/u.test(character) ? "letter" : "other");
    });
    expect(wrong).toEqual([]);
  });

  it("read no character as a slash, a backslash or a dot", () => {
    const wrong = canonicalCharacters.filter((character) => {
      const canonical = canon("USERNAMES", character);
      return /[./\\]/.test(canonical);
    });
    expect(wrong).toEqual([]);
  });
});

describe("the canonical form of names", () => {
  const readable = canonicalCharacters.filter((character) => canon("USERNAMES", character) !== character);
  const scripts = [
    "Latn",
    "Grek",
    "Cyrl",
    "Armn",
    "Hebr",
    "Arab",
    "Telu",
    "Knda",
    "Taml",
    "Mlym",
    "Thai",
    "Laoo",
  ];
  const letters = [...scripts, "Kana"].map((script) => {
    const isIn = (character: string) => isInScript(character.codePointAt(0) ?? 0, script);
    return { alike: readable.filter(isIn), all: canonicalCharacters.filter(isIn) };
  });
  const name = fc
    .constantFrom(...letters)
    .chain(({ alike, all }) => {
      const some = fc.oneof(
        fc.constantFrom(...alike),
        fc.constantFrom(...all),
        fc.constantFrom("o", "1", "-"),
      );
      return fc.array(some, { minLength: 1, maxLength: 8 });
    })
    .map((characters) => characters.join(""));

  it("is a fixed point, and accepted, also after a look-alike was read", () => {
    let read = 0;
    fc.assert(
      fc.property(fc.constantFrom(...nameTypes), name, (type, value) => {
        const first = canonicalize(ruleOf(type), value, 1 << 20);
        if (!first.ok) return;
        if (first.canonical !== canon("EMAILS", value)) read += 1;
        expect(canonicalize(ruleOf(type), first.canonical, 1 << 20)).toEqual(first);
      }),
      { numRuns: 5_000 },
    );
    expect(read).toBeGreaterThan(500);
  });

  it("looks like the name, by Unicode's data", () => {
    // A capital may be read by its own shape, and a capital of ASCII counts as its small letter.
    const shapes = (text: string) =>
      [text, text.toUpperCase()].flatMap((spelling) => [skeleton(spelling), caseFold(skeleton(spelling))]);
    const wrong = readable
      .map((character) => [character, canon("USERNAMES", character)] as const)
      .filter(([, canonical]) => !canonical.startsWith("<"))
      .filter(
        ([character, canonical]) => !shapes(canonical).some((shape) => shapes(character).includes(shape)),
      );
    expect(wrong).toEqual([]);
  });
});

it("every real name of the demo keeps its form", () => {
  const names = readFileSync(new URL("../../../demo/data/routes-10k.txt", import.meta.url), "utf8")
    .trim()
    .split("\n");
  expect(names.length).toBeGreaterThan(9_000);
  expect(names.filter((value) => canon("ROUTES", value) !== value.toLowerCase())).toEqual([]);
});
