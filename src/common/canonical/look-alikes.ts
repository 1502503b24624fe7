import { fromBase36, lazily, tokensOf } from "./code-point-runs.ts";
import { nameKind } from "./name-faults.ts";
import { isInScript } from "./scripts.ts";
import { READING_TARGETS, READINGS } from "./tables.ts";

/** The readings of a code point: first the one for every name, then one per target script. */
type Readings = readonly (string | undefined)[];

const readings = lazily(decodeReadings);

const DOT_ABOVE = 0x307;

/**
 * Reads a name as text of the first script that has a look-alike for each of its characters, so that names of
 * different scripts that look the same become equal: Cyrillic `сосо` becomes Latin `coco`. Most names can
 * only be read in their own script, and stay as they are. ASCII is never changed, so `rn` and `m` are
 * different, and `0` and `o`.
 */
export function readInFirstScript(name: string): string {
  if (!hasReadings(name)) return name;
  const text = withoutHiddenDots(readAlways(name)).normalize("NFC");
  for (let target = 0; target < READING_TARGETS.length; target += 1) {
    const read = readAs(text, target);
    // Targets before this one had no reading, but the new text may have one in them.
    if (read !== undefined) return read === text ? text : readInFirstScript(read);
  }
  return text;
}

function hasReadings(name: string): boolean {
  for (const character of name) {
    const codePoint = character.codePointAt(0) ?? 0;
    if (codePoint === DOT_ABOVE || readings().has(codePoint)) return true;
  }
  return false;
}

function readAlways(name: string): string {
  let read = "";
  for (const character of name) read += readings().get(character.codePointAt(0) ?? 0)?.[0] ?? character;
  return read;
}

/** Returns undefined if a character neither belongs to the target script nor has a reading in it. */
function readAs(name: string, target: number): string | undefined {
  const script = READING_TARGETS[target] ?? "";
  let read = "";
  for (const character of name) {
    const codePoint = character.codePointAt(0) ?? 0;
    const other = isInScript(codePoint, script) ? character : readings().get(codePoint)?.[target + 1];
    if (other === undefined) return undefined;
    read += other;
  }
  return read;
}

/** Removes the dot above from `i` and other letters that have a dot anyway. It cannot be seen. */
function withoutHiddenDots(name: string): string {
  let kept = "";
  let isDotted = false;
  for (const character of name) {
    const codePoint = character.codePointAt(0) ?? 0;
    const kind = nameKind(codePoint);
    if (kind !== "mark") isDotted = kind === "dotted";
    if (codePoint !== DOT_ABOVE || !isDotted) kept += character;
  }
  return kept;
}

function decodeReadings(): Map<number, Readings> {
  const table = new Map<number, (string | undefined)[]>();
  let codePoint = 0;
  for (const token of tokensOf(READINGS)) {
    const [gap = "", target = "", to = ""] = token.split(/[.=]/);
    codePoint += fromBase36(gap);
    const found = table.get(codePoint) ?? [];
    found[fromBase36(target)] = String.fromCodePoint(...to.split(",").map(fromBase36));
    table.set(codePoint, found);
  }
  return table;
}
