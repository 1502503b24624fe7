import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { firstRefusedCharacter } from "../../../src/common/canonical/characters.ts";

export const CODE_POINT_MAX = 0x10ffff;

interface CaseFoldingRow {
  readonly from: string;
  readonly status: string;
  readonly to: string;
}

/** The rows of CaseFolding.txt for full case folding, that is, with status C or F. */
export function fullCaseFoldingRows(): CaseFoldingRow[] {
  return rows("CaseFolding.txt")
    .map(([from = "", status = "", to = ""]) => ({ from: text(from), status, to: text(to) }))
    .filter(({ status }) => status === "C" || status === "F");
}

interface NormalizationRow {
  readonly part: string;
  readonly source: string;
  readonly nfc: string;
  readonly nfd: string;
  readonly nfkc: string;
  readonly nfkd: string;
}

export function normalizationRows(): NormalizationRow[] {
  let part = "";
  const found: NormalizationRow[] = [];
  for (const fields of rows("NormalizationTest.txt")) {
    const [first = ""] = fields;
    if (first.startsWith("@")) {
      part = first;
      continue;
    }
    const [source = "", nfc = "", nfd = "", nfkc = "", nfkd = ""] = fields.map(text);
    found.push({ part, source, nfc, nfd, nfkc, nfkd });
  }
  return found;
}

/**
 * The skeleton of UTS #39, from confusables.txt: two texts look the same if their skeletons are equal.
 */
export function skeletonOf(): (text: string) => string {
  const prototypes = new Map(
    rows("confusables.txt").map(([source = "", prototype = ""]) => [text(source), text(prototype)]),
  );
  return (typed) =>
    [...typed.normalize("NFD")]
      .map((character) => prototypes.get(character) ?? character)
      .join("")
      .normalize("NFD");
}

/** Every character that a name may contain, as a text of its own. */
export function* acceptedCharacters(): Generator<string> {
  for (let codePoint = 0; codePoint <= CODE_POINT_MAX; codePoint += 1) {
    const character = String.fromCodePoint(codePoint);
    if (!firstRefusedCharacter(character)) yield character;
  }
}

function rows(file: string): string[][] {
  return gunzipSync(readFileSync(new URL(`data/${file}.gz`, import.meta.url)))
    .toString("utf8")
    .split("\n")
    .map((line) => line.replace(/#.*/, "").replace("\ufeff", "").trim())
    .filter((line) => line !== "")
    .map((line) => line.split(";").map((field) => field.trim()));
}

function text(codePoints: string): string {
  if (codePoints === "") return "";
  return String.fromCodePoint(...codePoints.split(" ").map((hex) => Number.parseInt(hex, 16)));
}
