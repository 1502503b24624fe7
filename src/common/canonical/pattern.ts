import { RE2JS } from "re2js";
import type { CanonicalRule } from "./rule.ts";

/** The longest pattern, in UTF-16 units. */
export const MAX_PATTERN_LENGTH = 256;

/**
 * The largest program that a pattern may compile to, in RE2's instructions. A match takes at most this number
 * of steps per character, whatever the text. `[a-z0-9]{1,63}` has 128.
 */
const MAX_PATTERN_STEPS = 300;

/** The patterns that were compiled. Rules never change, and a pattern lives as long as its rule. */
const patterns = new WeakMap<CanonicalRule, RE2JS>();

/** Whether a text matches the pattern of a rule as a whole. The time is linear in the length of the text. */
export function isMatch(rule: CanonicalRule, text: string): boolean {
  if (rule.pattern === undefined) return true;
  const known = patterns.get(rule);
  if (known !== undefined) return known.matches(text);
  const pattern = RE2JS.compile(rule.pattern);
  patterns.set(rule, pattern);
  return pattern.matches(text);
}

/** The most steps that a match of one name may take. They take some 20 ms. */
const MAX_MATCH_STEPS = 150_000;

/** The most characters of a name that has no other bound. */
const MAX_CHARACTERS = 1_024;

/** Returns why a pattern cannot be used, as the end of a sentence, or undefined. */
export function patternFault(pattern: string, maxLength = MAX_CHARACTERS): string | undefined {
  if (pattern.length === 0) return "must not be empty";
  if (pattern.length > MAX_PATTERN_LENGTH) return `must have at most ${MAX_PATTERN_LENGTH} characters`;
  try {
    const steps = RE2JS.compile(pattern).programSize();
    const perName = steps * Math.min(maxLength, MAX_CHARACTERS);
    if (steps <= MAX_PATTERN_STEPS && perName <= MAX_MATCH_STEPS) return undefined;
    return (
      `is too large: it takes ${steps} steps per character and ${perName} per name, and ` +
      `${MAX_PATTERN_STEPS} and ${MAX_MATCH_STEPS} are allowed; set a smaller \`max_length\`, ` +
      "and use `min_length` and `max_length` instead of large repetitions"
    );
  } catch (error) {
    const why =
      error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : "unknown error";
    return `is not in the syntax of RE2, which has no lookaround and no backreferences: ${why}`;
  }
}
