import type { CharacterPosition } from "./characters.ts";
import { decodeRuns, lazily, valueAt, tokensOf } from "./code-point-runs.ts";
import { SCRIPT_SET_RUNS, SCRIPT_SETS } from "./tables.ts";

/** Writing systems that mix scripts by nature: Chinese with Bopomofo, Japanese, Korean (UTS #39, augmented script sets). */
const WRITING_SYSTEMS = {
  Hanb: ["Hani", "Bopo"],
  Jpan: ["Hani", "Hira", "Kana"],
  Kore: ["Hani", "Hang"],
} as const;

/** Undefined for Common and Inherited, which go with every script. */
type ScriptSet = ReadonlySet<string> | undefined;

const scripts = lazily(() => ({
  runs: decodeRuns(SCRIPT_SET_RUNS),
  sets: tokensOf(SCRIPT_SETS).map(augmentedSet),
}));

/**
 * The first code point that makes a text mix scripts, by the "highly restrictive" level of UTS #39: all of one script or
 * writing system, or of Latin and one writing system. Paths are judged segment by segment, so `separator` starts afresh.
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
