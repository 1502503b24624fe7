import { type BucketTypeName, bucketTypes, type CanonicalRule } from "../registry.ts";
import {
  type CharacterRefusal,
  firstRefusedCharacter,
  type CharacterPosition,
  utf8Length,
} from "./characters.ts";
import { caseFold } from "./fold.ts";
import { firstMixedScript } from "./scripts.ts";
import { UNICODE_VERSION } from "./tables.ts";

/**
 * The version of the canonical form, which determines who owns a name. Any change of its result, for any
 * value, needs a new version.
 */
export const CANONICAL_VERSION = 1;

export type CanonicalRefusal = "empty" | "too_long" | CharacterRefusal | "mixed_script" | "bad_segment";

type Canonical = { ok: true; canonical: string };
type Refused = { ok: false; refusal: CanonicalRefusal; detail: string };

const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * One pass is enough for every value (a test proves it), and the second one confirms the result. If more were
 * needed, the runtime would be at fault.
 */
const MAX_PASSES = 4;

const WHAT: Record<CharacterRefusal, string> = {
  ill_formed: "is a lone surrogate",
  control: "is a control character",
  bidi: "changes the direction of text",
  zero_width: "is invisible",
  unassigned: `is not assigned in Unicode ${UNICODE_VERSION}`,
};

/**
 * Returns the canonical form of a typed value. Two values of a bucket type are the same name if their
 * canonical forms are equal. The typed and the canonical text both have 1 to `maxBytes` bytes in UTF-8. The
 * canonical form of canonical text is that text.
 *
 *     canonicalize("ROUTES", "GitLab-Org/Straße", 1024) // { ok: true, canonical: "gitlab-org/strasse" }
 */
export function canonicalize(
  bucketType: BucketTypeName,
  value: string,
  maxBytes: number,
): Canonical | Refused {
  if (value.length === 0) return refused("empty", "The value is empty.");
  // Each UTF-16 unit takes at least one byte in UTF-8, so this check bounds all the work below.
  if (value.length > maxBytes) return tooLong("The value", maxBytes);

  // The fast path: ASCII is already normalized and has one script, so it needs one loop and no table.
  const rule: CanonicalRule = bucketTypes[bucketType].canonical;
  let upperCase = false;
  let segmentStart = 0;
  let badSegmentStart = -1;
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit >= 0x80) return canonicalizeUnicode(rule, value, maxBytes);
    if (unit < 0x20 || unit === 0x7f) return refusedCharacter("control", { codePoint: unit, index }, "");
    if (unit >= 0x41 && unit <= 0x5a) upperCase = true;
    else if (unit === SLASH) {
      if (badSegmentStart < 0 && isBadSegment(value, segmentStart, index)) badSegmentStart = segmentStart;
      segmentStart = index + 1;
    }
  }
  if (rule.path) {
    if (badSegmentStart < 0 && isBadSegment(value, segmentStart, value.length))
      badSegmentStart = segmentStart;
    if (badSegmentStart >= 0) return refusedSegment(badSegmentStart);
  }
  return { ok: true, canonical: upperCase ? value.toLowerCase() : value };
}

function canonicalizeUnicode(rule: CanonicalRule, value: string, maxBytes: number): Canonical | Refused {
  const typed = firstRefusedCharacter(value);
  if (typed) return refusedCharacter(typed.refusal, typed, "");
  if (utf8Length(value) > maxBytes) return tooLong("The value", maxBytes);

  const canonical = toFixedPoint(value);
  if (canonical === undefined) return refused("ill_formed", "The value has no stable canonical form.");
  // Normalization may make a value longer. In all known runtimes it produces no refused character from
  // accepted ones (a test proves it). What is stored must not depend on that, so it is checked here too.
  const made = firstRefusedCharacter(canonical);
  if (made) return refusedCharacter(made.refusal, made, " of the canonical form");
  if (utf8Length(canonical) > maxBytes) return tooLong("The canonical form", maxBytes);

  // Checked after normalization, which turns look-alikes of slashes and dots into slashes and dots, and makes
  // wide and narrow forms of a letter equal.
  const badSegmentStart = rule.path ? firstBadSegment(canonical) : -1;
  if (badSegmentStart >= 0) return refusedSegment(Array.from(canonical.slice(0, badSegmentStart)).length);
  const mixed = rule.singleScript ? firstMixedScript(canonical, rule.path ? "/" : undefined) : undefined;
  if (mixed) return refusedMixture(mixed, rule.path);
  return { ok: true, canonical };
}

/**
 * Applies NFKC, case folding and NFC until the text no longer changes. If canonical text had another
 * canonical form, a name could be taken twice.
 */
function toFixedPoint(value: string): string | undefined {
  let text = value;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const next = caseFold(text.normalize("NFKC")).normalize("NFC");
    if (next === text) return text;
    text = next;
  }
  return undefined;
}

function firstBadSegment(path: string): number {
  for (let start = 0; start <= path.length;) {
    const slash = path.indexOf("/", start);
    const end = slash < 0 ? path.length : slash;
    if (isBadSegment(path, start, end)) return start;
    start = end + 1;
  }
  return -1;
}

/** True for an empty segment, `.` and `..`, that is, for at most two characters, all of them dots. */
function isBadSegment(path: string, start: number, end: number): boolean {
  if (end - start > 2) return false;
  for (let index = start; index < end; index += 1) if (path.charCodeAt(index) !== DOT) return false;
  return true;
}

// Details give an index and a code point, never the value, because they appear in logs and to other people.

function refused(refusal: CanonicalRefusal, detail: string): Refused {
  return { ok: false, refusal, detail };
}

function tooLong(what: string, maxBytes: number): Refused {
  return refused("too_long", `${what} is longer than ${maxBytes} bytes of UTF-8.`);
}

function refusedCharacter(refusal: CharacterRefusal, position: CharacterPosition, where: string): Refused {
  return refused(refusal, `${describe(position)}${where} ${WHAT[refusal]}.`);
}

function refusedSegment(index: number): Refused {
  return refused(
    "bad_segment",
    `The path segment at index ${index} of the canonical form is empty, "." or "..".`,
  );
}

function refusedMixture(position: CharacterPosition, path: boolean): Refused {
  const whole = path ? "path segment" : "value";
  return refused(
    "mixed_script",
    `${describe(position)} of the canonical form has another script than the rest of its ${whole}.`,
  );
}

function describe({ codePoint, index }: CharacterPosition): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")} at index ${index}`;
}
