import type { CharacterPosition } from "./characters.ts";
import { decodeRuns, lazily, valueAt, tokensOf } from "./code-point-runs.ts";
import { SCRIPT_SET_RUNS, SCRIPT_SETS } from "./tables.ts";

/**
 * Writing systems that consist of several scripts: Chinese with Bopomofo, Japanese, and Korean (UTS #39,
 * augmented script sets).
 */
const WRITING_SYSTEMS = {
  Hanb: ["Hani", "Bopo"],
  Jpan: ["Hani", "Hira", "Kana"],
  Kore: ["Hani", "Hang"],
} as const;

/** Undefined for Common and Inherited, which may be combined with every script. */
type ScriptSet = ReadonlySet<string> | undefined;

const scripts = lazily(() => ({
  runs: decodeRuns(SCRIPT_SET_RUNS),
  sets: tokensOf(SCRIPT_SETS).map(augmentedSet),
}));

/**
 * Returns the first code point that makes a text mix scripts, by the "highly restrictive" level of UTS #39: a
 * text must have one script or writing system, or Latin and one writing system. In a path each segment is
 * checked by itself, so `separator` starts a new check.
 */
export function firstMixedScript(text: string, separator: string | undefined): CharacterPosition | undefined {
  const { runs, sets } = scripts();
  let common: ScriptSet;
  let besideLatin: ScriptSet;
  let index = 0;
  for (const character of text) {
    if (character === separator) {
      common = undefined;
      besideLatin = undefined;
    } else {
      const codePoint = character.codePointAt(0) ?? 0;
      const set = sets[valueAt(runs, codePoint)];
      common = intersection(common, set);
      if (!set?.has("Latn")) besideLatin = intersection(besideLatin, set);
      if (common?.size === 0 && !holdsWritingSystem(besideLatin)) return { codePoint, index };
    }
    index += 1;
  }
  return undefined;
}

/** True if a text of the script may contain the code point. */
export function isInScript(codePoint: number, script: string): boolean {
  const { runs, sets } = scripts();
  return sets[valueAt(runs, codePoint)]?.has(script) ?? true;
}

function intersection(a: ScriptSet, b: ScriptSet): ScriptSet {
  if (a === undefined || a === b) return b;
  return b === undefined ? a : new Set([...a].filter((script) => b.has(script)));
}

function holdsWritingSystem(set: ScriptSet): boolean {
  return set === undefined || Object.keys(WRITING_SYSTEMS).some((system) => set.has(system));
}

function augmentedSet(names: string): ScriptSet {
  if (names === "*") return undefined;
  const set = new Set(names.split("+"));
  for (const [system, members] of Object.entries(WRITING_SYSTEMS)) {
    if (members.some((script) => set.has(script))) set.add(system);
  }
  return set;
}
