import { describe, expect, it } from "vitest";
import { firstRefusedCharacter } from "../../../src/common/canonical/characters.ts";
import { caseFold } from "../../../src/common/canonical/fold.ts";
import { firstMixedScript } from "../../../src/common/canonical/scripts.ts";
import { UNICODE_VERSION } from "../../../src/common/canonical/tables.ts";
import {
  acceptedCharacters,
  CODE_POINT_MAX,
  fullCaseFoldingRows,
  normalizationRows,
} from "./unicode-data.ts";

// The canonical form uses the runtime's normalization. Unicode promises that it never changes for assigned
// code points. These tests check the promise for the current runtime, and compare the committed tables with
// the Unicode files.

describe("the runtime's normalization", () => {
  const table = normalizationRows();

  it("agrees with every row of NormalizationTest.txt", () => {
    expect(table.length).toBeGreaterThan(19_000);
    const wrong = table.filter(
      ({ source, nfc, nfd, nfkc, nfkd }) =>
        [source, nfc, nfd].some((text) => text.normalize("NFC") !== nfc) ||
        [nfkc, nfkd].some((text) => text.normalize("NFC") !== nfkc) ||
        [source, nfc, nfd, nfkc, nfkd].some((text) => text.normalize("NFKC") !== nfkc),
    );
    expect(wrong).toEqual([]);
  });

  it("changes no assigned code point that part 1 of NormalizationTest.txt does not list", () => {
    const listed = new Set(table.filter(({ part }) => part === "@Part1").map(({ source }) => source));
    const wrong: string[] = [];
    for (const character of acceptedCharacters()) {
      if (listed.has(character)) continue;
      if (character.normalize("NFC") !== character || character.normalize("NFKC") !== character)
        wrong.push(character);
    }
    expect(wrong).toEqual([]);
  });
});

describe("case folding", () => {
  it("agrees with every C and F row of CaseFolding.txt", () => {
    const table = fullCaseFoldingRows();
    expect(table.length).toBeGreaterThan(1_500);
    expect(table.filter(({ from, to }) => caseFold(from) !== to)).toEqual([]);
  });

  it("changes no other code point", () => {
    const listed = new Set(fullCaseFoldingRows().map(({ from }) => from));
    const wrong = [...acceptedCharacters()].filter(
      (character) => !listed.has(character) && caseFold(character) !== character,
    );
    expect(wrong).toEqual([]);
  });

  it("folds anywhere in a text", () => {
    expect(caseFold("")).toBe("");
    expect(caseFold("\u{1f600}STRA\u1e9eE\u{1f600}\u{10400}")).toBe("\u{1f600}strasse\u{1f600}\u{10428}");
  });
});

function refusalOf(codePoint: number): string | undefined {
  return firstRefusedCharacter(String.fromCodePoint(codePoint))?.refusal;
}

/** Returns the refusal by the runtime's own tables. */
function expectedRefusal(character: string): string | undefined {
  if (/\p{Cs}/u.test(character)) return "ill_formed";
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(character)) return "control";
  if (/\p{Bidi_Control}/u.test(character)) return "bidi";
  if (/\p{Default_Ignorable_Code_Point}/u.test(character)) return "zero_width";
  if (/\p{Co}/u.test(character)) return "private_use";
  // All format characters except the prepended concatenation marks, which are visible, and characters that
  // draw nothing although the property above does not include them.
  const drawn = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u.test(character);
  const isBlank =
    /[\u1680\u2800\ufffc\u{13441}\u{13442}\u{1d159}]/u.test(character) ||
    /\u2d7f|\u{1107f}|\u{13440}|\u{16fe4}|\u{1bc9d}/u.test(character) ||
    (character >= "\u{1da9b}" && character <= "\u{1daaf}" && character !== "\u{1daa0}");
  if (isBlank || (/\p{Cf}/u.test(character) && !drawn)) return "zero_width";
  return undefined;
}

describe("the refusals of characters", () => {
  it("have the counts of Unicode 15.0", () => {
    expect(UNICODE_VERSION).toBe("15.0.0");
    const counts: Record<string, number> = {};
    for (let codePoint = 0; codePoint <= CODE_POINT_MAX; codePoint += 1) {
      const refusal = refusalOf(codePoint) ?? "accepted";
      counts[refusal] = (counts[refusal] ?? 0) + 1;
    }
    expect(counts).toEqual({
      accepted: 148_729,
      control: 67,
      bidi: 12,
      zero_width: 4_212, // 3,769 of them are not assigned yet, but already ignorable
      unassigned: 821_576,
      ill_formed: 2_048,
      private_use: 137_468,
    });
  });

  it("agree with the runtime about every character that both know", () => {
    const wrong: string[] = [];
    for (let codePoint = 0; codePoint <= CODE_POINT_MAX; codePoint += 1) {
      const refusal = refusalOf(codePoint);
      if (refusal === "unassigned") continue; // A newer runtime may know the character.
      const character = String.fromCodePoint(codePoint);
      const expected = expectedRefusal(character);
      if (expected !== refusal) wrong.push(`${codePoint.toString(16)}: ${refusal} but ${expected}`);
    }
    expect(wrong).toEqual([]);
  });
});

describe("the script table", () => {
  // Compares with Script, not Script_Extensions: newer Unicode versions change the latter for old characters
  // (seen with 17.0).
  const anyScript = /\p{Script=Common}|\p{Script=Inherited}/u;
  const withLatin = /[\p{sc=Latin}\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Bopomofo}]/u;

  it("allows Latin with every character of its own and of the East Asian scripts", () => {
    const fine = [...acceptedCharacters()].filter((character) => withLatin.test(character));
    expect(fine.length).toBeGreaterThan(100_000);
    expect(fine.filter((character) => firstMixedScript(`a${character}`, undefined))).toEqual([]);
  });

  it("allows Latin with no character of any other script", () => {
    const others = [...acceptedCharacters()].filter(
      (character) => !withLatin.test(character) && !anyScript.test(character),
    );
    expect(others.length).toBeGreaterThan(20_000);
    expect(others.filter((character) => !firstMixedScript(`a${character}`, undefined))).toEqual([]);
  });
});

it("normalization and folding turn no accepted character into a refused one", () => {
  const wrong = [...acceptedCharacters()].filter(
    (character) =>
      firstRefusedCharacter(character.normalize("NFKD")) ||
      firstRefusedCharacter(character.normalize("NFKC")) ||
      firstRefusedCharacter(caseFold(character)),
  );
  expect(wrong).toEqual([]);
});

// canonicalize() applies NFKC, folding and NFC. Four facts about single characters prove that one pass is
// enough for any text. After NFKC, all characters are as in (1). So the result of folding has no
// compatibility form (1), and it is folded (2), also when decomposed (3). What NFC composes from it folds
// only to its own decomposition (4), which NFC reverses.
describe("one pass is enough for every text, because", () => {
  const accepted = [...acceptedCharacters()];
  const folded = accepted.filter((character) => caseFold(character) === character);

  it("(1) folding a normalized character makes no compatibility character", () => {
    const normalized = accepted.filter((character) => character.normalize("NFKC") === character);
    const wrong = normalized.filter((character) =>
      [...caseFold(character)].some((c) => c.normalize("NFKD") !== c.normalize("NFD")),
    );
    expect(wrong).toEqual([]);
  });

  it("(2) folding twice is the same as folding once", () => {
    expect(accepted.filter((character) => caseFold(caseFold(character)) !== caseFold(character))).toEqual([]);
  });

  it("(3) a folded character stays folded when it is decomposed", () => {
    expect(
      folded.filter((character) => caseFold(character.normalize("NFD")) !== character.normalize("NFD")),
    ).toEqual([]);
  });

  it("(4) a composition of folded characters folds to what it was composed of", () => {
    const compositions = accepted.filter((character) => {
      const parts = character.normalize("NFD");
      return parts !== character && caseFold(parts) === parts;
    });
    expect(compositions.length).toBeGreaterThan(11_172); // More than all of Hangul.
    const wrong = compositions.filter(
      (character) => caseFold(character).normalize("NFD") !== character.normalize("NFD"),
    );
    expect(wrong).toEqual([]);
  });
});
