// Computes the tables for names that people compare by eye, from the data of UTS #39. For unicode-tables.mjs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { base36, CODE_POINTS, codePointSet, rows, UNICODE_VERSION } from "./unicode-source.mjs";

/** ICU's sources contain the data of UTS #39, which Debian's unicode-data does not have. */
const ICU = "/usr/src/icu/source";

/** What a code point is in a name. The table stores the index in this list. */
export const NAME_KINDS = ["restricted", "letter", "dotted", "mark", "other"];

/** No reading contains these characters, because they would change the structure of a path. */
const STRUCTURE = /[./\\]/;

/**
 * Scripts that are no targets. A Japanese name uses several scripts, so its characters are read one by one.
 * No Hangul syllable looks like a character of another script.
 */
const NO_TARGETS = new Set(["Hani", "Hira", "Kana", "Bopo", "Hang"]);

/** Two scripts are compared with each other if they share at least this number of letters. */
const SHARED_LETTERS = 4;

/**
 * Returns the kind of each code point, for canonical text. A code point that canonical text cannot contain
 * gets the kind of the code point before it, which makes the runs longer.
 */
export function nameKinds({ isCanonical, category }) {
  const allowed = allowedCodePoints();
  const dotted = codePointSet("PropList.txt", "Soft_Dotted");
  const overlays = new Set();
  for (const [code, , , combiningClass] of rows("UnicodeData.txt"))
    if (combiningClass === "1") overlays.add(parseInt(code, 16));

  const kindOf = (codePoint) => {
    const gc = category[codePoint];
    // ASCII is up to the application. No overlay remains after normalization where a letter contains one.
    if (codePoint >= 0x80 && (!allowed.has(codePoint) || overlays.has(codePoint))) return "restricted";
    if (gc === "Mn" || gc === "Me") return "mark";
    if (dotted.has(codePoint)) return "dotted";
    return gc.startsWith("L") || gc === "Mc" ? "letter" : "other";
  };
  const kinds = [];
  for (let codePoint = 0; codePoint < CODE_POINTS; codePoint += 1)
    kinds.push(isCanonical(codePoint) ? NAME_KINDS.indexOf(kindOf(codePoint)) : (kinds.at(-1) ?? 0));
  return kinds;
}

/**
 * Returns which characters are read as others, as rows of `from`, `target` and `to`, and the targets in their
 * order. Target `*` means that the character is always read so. The other readings apply to a name if each of
 * its characters is in the target script or has a reading in it.
 */
export function readings({ isCanonical, kinds, scripts, category, fold }) {
  const skeleton = skeletons();
  const upperCase = simpleUpperCase();
  const at = (table, character) => table[character.codePointAt(0)];
  const set = (character) => at(scripts, character);
  const kind = (character) => NAME_KINDS[at(kinds, character)];
  const isIn = (character, script) => set(character).split("+").includes(script);
  const isAccepted = (character) =>
    isCanonical(character.codePointAt(0)) && kind(character) !== "restricted" && character > " ";
  const isAcceptedText = (text) => {
    const pieces = [...text];
    const hasBases = pieces.every(
      (piece, index) => kind(piece) !== "mark" || kind(pieces[index - 1] ?? "a") !== "other",
    );
    return pieces.every(isAccepted) && hasBases && !STRUCTURE.test(text);
  };

  const characters = everyCharacter().filter(
    (character) => isAccepted(character) && set(character) !== "Hang",
  );
  /** The characters that look the same, in ascending order. */
  const classes = Map.groupBy(characters, skeleton);
  const alike = (character) => classes.get(skeleton(character)) ?? [];

  // ---- readings as ASCII ----------------------------------------------------------------------------------

  const asciiBySkeleton = new Map(
    characters.filter(isAscii).map((character) => [skeleton(character), character]),
  );
  const asciiText = (text) => {
    if (!isAscii(text)) return undefined;
    return text.length > 1 ? (asciiBySkeleton.get(text) ?? fold(text)) : fold(text);
  };
  /** A small letter may look like a small letter, or its capital like a capital. The former is preferred. */
  const ascii = (character) => {
    const small = skeleton(character);
    return fold(small) === small && isAscii(small)
      ? asciiText(small)
      : (asciiText(skeleton(upperCase(character))) ?? asciiText(small));
  };

  // ---- readings that always apply -------------------------------------------------------------------------

  const always = (character) => {
    if (isAscii(character)) return undefined;
    const others = alike(character).filter((other) => other !== character);
    // Digits and punctuation.
    if (kind(character) === "other" || set(character) === "") {
      const common = others.find(
        (other) => other < character && set(other) === "" && kind(other) === "other",
      );
      if (common !== undefined) return common;
    }
    // The digits of Arabic and of Persian.
    if (at(category, character) === "Nd")
      return others.find(
        (other) =>
          other < character && at(category, other) === "Nd" && set(other).startsWith(`${set(character)}+`),
      );
    if (set(character) === "Latn")
      return inPieces(character, (piece) => (isAscii(piece) ? piece : ascii(piece)));
    if (isIn(character, "Hira") || isIn(character, "Kana"))
      return (
        others.find((other) => set(other) === "Hani" && other.length === 1) ??
        (set(character) === "Kana" ? others.find((other) => set(other) === "Hira") : undefined)
      );
    return undefined;
  };

  /** Composed characters are read like their parts. Marks stay. */
  const inPieces = (character, read) => {
    const pieces = [...character.normalize("NFD")].map((piece) =>
      kind(piece) === "mark" && set(piece) === "" ? piece : read(piece),
    );
    return pieces.includes(undefined) ? undefined : pieces.join("").normalize("NFC");
  };

  // ---- readings that apply to whole names -----------------------------------------------------------------

  const inScript = (character, script) => {
    if (set(character) === "" || isIn(character, script)) return character;
    const text = script === "Latn" ? ascii(character) : undefined;
    return (
      text ??
      alike(character).find((other) => isIn(other, script)) ??
      alike(character).find((other) => kind(other) === "mark" && set(other) === "")
    );
  };

  const targets = [...new Set(characters.flatMap((character) => set(character).split("+")))].filter(
    (script) => script !== "" && !NO_TARGETS.has(script),
  );
  const isInNoTarget = (character) =>
    set(character)
      .split("+")
      .some((script) => NO_TARGETS.has(script));
  const found = [];
  const add = (from, target, to) => {
    if (to !== undefined && to !== from && isAcceptedText(to)) found.push({ from, target, to });
  };
  const alwaysText = (text) => [...text].map((character) => always(character) ?? character).join("");
  for (const character of characters) {
    if (isAscii(character)) continue;
    const fixed = always(character);
    add(character, "*", fixed);
    if (fixed !== undefined && fixed !== character) continue;
    // A name is in a script of its own at the latest, so no later target is ever tried.
    const last = Math.max(...targets.map((target, index) => (isIn(character, target) ? index : -1)));
    for (const target of targets.slice(0, isInNoTarget(character) ? undefined : last)) {
      if (set(character) === "" || isIn(character, target)) continue;
      const whole = inScript(character, target) ?? inPieces(character, (piece) => inScript(piece, target));
      if (whole !== undefined) add(character, target, alwaysText(whole));
    }
  }
  const isUseful = usefulPairs(found, { set, kind });
  const kept = found.filter(isUseful);
  const used = targets.filter((target) => kept.some((reading) => reading.target === target));
  return { readings: kept, targets: used };
}

/**
 * Most pairs of scripts share a mark or the digit zero, but no words. Keeps the pairs of scripts that share
 * enough letters. For Latin, which every reader knows, it keeps all letters and digits.
 */
function usefulPairs(found, { set, kind }) {
  const letters = new Map();
  const isLetter = (character) => kind(character) === "letter" || kind(character) === "dotted";
  const pairsOf = ({ from, target }) =>
    set(from)
      .split("+")
      .map((script) => `${script} ${target}`);
  for (const reading of found) {
    if (!isLetter(reading.from)) continue;
    for (const pair of pairsOf(reading)) letters.set(pair, (letters.get(pair) ?? new Set()).add(reading.to));
  }
  return (reading) =>
    reading.target === "*" ||
    (reading.target === "Latn" && kind(reading.from) !== "mark") ||
    pairsOf(reading).some((pair) => (letters.get(pair)?.size ?? 0) >= SHARED_LETTERS);
}

/** `gap.target=a,b`: each gap is counted from the code point before. Target 0 is `*`. */
export function readingTokens({ readings: found, targets }) {
  let last = 0;
  return found.map(({ from, target, to }) => {
    const codePoint = from.codePointAt(0);
    const gap = codePoint - last;
    last = codePoint;
    const codePoints = [...to].map((character) => base36(character.codePointAt(0)));
    return `${base36(gap)}.${base36(targets.indexOf(target) + 1)}=${codePoints.join(",")}`;
  });
}

// ---- reading the data -------------------------------------------------------------------------------------

/**
 * The code points with Identifier_Status Allowed. ICU has them as two patterns in its source, generated from
 * IdentifierType.txt.
 */
function allowedCodePoints() {
  const source = readFileSync(join(ICU, "i18n/uspoof.cpp"), "utf8");
  const allowed = new Set(["inclusion", "recommended"].flatMap((name) => patternCodePoints(source, name)));
  // Added in 15.0, and added in 15.1.
  if (!allowed.has(0x31350) || allowed.has(0x2ebf0))
    throw new Error(
      `${ICU}/i18n/uspoof.cpp must be of Unicode ${UNICODE_VERSION}; install the source of ICU 72`,
    );
  return allowed;
}

function patternCodePoints(source, name) {
  const literal = new RegExp(`\\*${name}Pat =\\s*((?:u"[^\\n]*"\\s*)+);`).exec(source)?.[1];
  if (literal === undefined) throw new Error(`${ICU}/i18n/uspoof.cpp has no ${name}Pat`);
  const pattern = [...literal.matchAll(/u"(.*)"/g)].map(([, text]) => text).join("");
  const items = pattern
    .slice(1, -1)
    .matchAll(/\\\\u([0-9A-F]{4})|\\\\U([0-9A-F]{8})|\\\\(.)|(.)/g)
    .map(([, short, long, escaped, plain]) => {
      if (plain === "-") return "-";
      return short || long ? parseInt(short ?? long, 16) : (escaped ?? plain).codePointAt(0);
    });
  const found = [];
  let isRange = false;
  for (const item of items) {
    if (item === "-") {
      isRange = true;
      continue;
    }
    const first = isRange ? found.at(-1) + 1 : item;
    for (let codePoint = first; codePoint <= item; codePoint += 1) found.push(codePoint);
    isRange = false;
  }
  return found;
}

/** The skeleton of UTS #39: two texts look the same if their skeletons are equal. */
function skeletons() {
  const prototypes = new Map();
  for (const [source, target] of confusables()) prototypes.set(textOf(source), textOf(target));
  return (text) =>
    [...text.normalize("NFD")]
      .map((character) => prototypes.get(character) ?? character)
      .join("")
      .normalize("NFD");
}

export function confusablesText() {
  const text = readFileSync(join(ICU, "data/unidata/confusables.txt"), "utf8").replace("\ufeff", "");
  if (!text.includes(`\n# Version: ${UNICODE_VERSION}\n`))
    throw new Error(`${ICU} must be of Unicode ${UNICODE_VERSION}; install the source of ICU 72`);
  return text;
}

function confusables() {
  return confusablesText()
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "")
    .map((line) => line.split(";").map((field) => field.trim()));
}

function simpleUpperCase() {
  const upperCase = new Map();
  for (const fields of rows("UnicodeData.txt"))
    if (fields[12] !== "") upperCase.set(textOf(fields[0]), textOf(fields[12]));
  return (character) => upperCase.get(character) ?? character;
}

function everyCharacter() {
  const codePoints = Array.from({ length: CODE_POINTS }, (_, codePoint) => codePoint);
  return codePoints.filter((c) => c < 0xd800 || c > 0xdfff).map((c) => String.fromCodePoint(c));
}

function textOf(codePoints) {
  return String.fromCodePoint(...codePoints.split(" ").map((hex) => parseInt(hex, 16)));
}

function isAscii(text) {
  return /^[\0-\x7f]*$/.test(text);
}
