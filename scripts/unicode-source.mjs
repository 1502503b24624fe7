// Reads the files of the Unicode Character Database, and encodes tables compactly. For unicode-tables.mjs.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const UNICODE_VERSION = "15.0.0";
const SOURCE = "/usr/share/unicode";

export const CODE_POINTS = 0x110000;
const LINE_WIDTH = 110;

export function readSource(file) {
  const text = readFileSync(join(SOURCE, file), "utf8");
  assertVersion(file, text);
  return text;
}

export function readPackedSource(file) {
  const packed = join(SOURCE, `${file}.bz2`);
  const text = execFileSync("bzip2", ["-dc", packed], { encoding: "utf8", maxBuffer: 1 << 26 });
  assertVersion(file, text);
  return text;
}

function assertVersion(file, text) {
  // UnicodeData.txt has no header with a version, so check for the newest characters of this version.
  const [name] = file.split(".");
  const found =
    file === "UnicodeData.txt"
      ? text.includes("\n1F6DC;WIRELESS;") && !text.includes("\n2FFC;")
      : text.startsWith(`# ${name}-${UNICODE_VERSION}.txt`);
  if (!found)
    throw new Error(
      `${SOURCE}/${file} must be of Unicode ${UNICODE_VERSION}; install the matching unicode-data package`,
    );
}

export function rows(file) {
  return readSource(file)
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "")
    .map((line) => line.split(";").map((field) => field.trim()));
}

export function codePointSet(file, property) {
  const found = everyCodePoint(false);
  for (const [range, name] of rows(file)) if (name === property) fillRange(found, range, true);
  const set = new Set();
  found.forEach((has, codePoint) => has && set.add(codePoint));
  if (set.size === 0) throw new Error(`${file} does not contain the property ${property}`);
  return set;
}

export function everyCodePoint(value) {
  return Array.from({ length: CODE_POINTS }, () => value);
}

export function fillRange(perCodePoint, range, value) {
  if (value === undefined)
    throw new Error(`the script of ${range} has no short name in PropertyValueAliases.txt`);
  const [first, last = first] = range.split("..").map((hex) => parseInt(hex, 16));
  perCodePoint.fill(value, first, last + 1);
}

// ---- compact encoding -------------------------------------------------------------------------------------

export function runs(perCodePoint) {
  const tokens = [];
  let length = 0;
  perCodePoint.forEach((value, codePoint) => {
    length += 1;
    if (perCodePoint[codePoint + 1] === value) return;
    tokens.push(`${base36(length)}.${base36(value)}`);
    length = 0;
  });
  return tokens;
}

export function base36(number) {
  return number.toString(36);
}

export function wrap(tokens) {
  const lines = [""];
  for (const token of tokens) {
    const line = lines.at(-1);
    if (line === "") lines[lines.length - 1] = token;
    else if (line.length + 1 + token.length <= LINE_WIDTH) lines[lines.length - 1] = `${line} ${token}`;
    else lines.push(token);
  }
  return lines.join("\n");
}
