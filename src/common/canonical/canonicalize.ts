import {
  type CharacterRefusal,
  firstRefusedCharacter,
  type CharacterPosition,
  utf8Length,
} from "./characters.ts";
import { domainFault, emailFault } from "./email-fault.ts";
import { caseFold } from "./fold.ts";
import { readInFirstScript } from "./look-alikes.ts";
import { firstNameFault, type NameRefusal } from "./name-faults.ts";
import { isMatch } from "./pattern.ts";
import type { CanonicalRule } from "./rule.ts";
import { firstMixedScript } from "./scripts.ts";
import { UNICODE_VERSION } from "./tables.ts";

/**
 * The version of the canonical form, which determines who owns a name. Any change of its result, for any
 * value, needs a new version.
 */
export const CANONICAL_VERSION = 1;

export type CanonicalRefusal =
  | "empty"
  | "too_long"
  | CharacterRefusal
  | NameRefusal
  | "space"
  | "mixed_script"
  | "not_ascii"
  | "bad_segment"
  | "email"
  | "domain"
  | "length"
  | "pattern";

type Canonical = { ok: true; canonical: string };
type Refused = { ok: false; refusal: CanonicalRefusal; detail: string };

const SPACE = 0x20;
const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * One pass of folding is enough for every value (a test proves it), and the second one confirms the result.
 * If more were needed, the runtime would be at fault. The same is true of reading look-alikes.
 */
const MAX_PASSES = 4;

type AnyCharacterRefusal = CharacterRefusal | NameRefusal | "not_ascii";

const WHAT: Record<AnyCharacterRefusal, string> = {
  ill_formed: "is a lone surrogate",
  control: "is a control character",
  bidi: "changes the direction of text",
  zero_width: "is invisible",
  unassigned: `is not assigned in Unicode ${UNICODE_VERSION}`,
  private_use: "is for private use, so a font may draw nothing",
  restricted: `is not allowed in names: Unicode ${UNICODE_VERSION} restricts it`,
  mark: "is a mark that readers may overlook, or not on a letter",
  not_ascii: "is outside of ASCII, where names cannot tell capitals from their look-alikes",
};

const OF_CANONICAL = " of the canonical form";

/**
 * Returns the canonical form of a typed value. Two values of a bucket type are the same name if their
 * canonical forms are equal. The typed and the canonical text both have 1 to `maxBytes` bytes in UTF-8. The
 * canonical form of canonical text is that text.
 *
 *     const path = { form: "path", script: "single", case: "folded" } as const;
 *     canonicalize(path, "GitLab-Org/Straße", 1024); // { ok: true, canonical: "gitlab-org/strasse" }
 */
export function canonicalize(rule: CanonicalRule, value: string, maxBytes: number): Canonical | Refused {
  const made = canonicalOf(rule, value, maxBytes);
  if (!made.ok) return made;
  const { form } = rule;
  if (form === "email" || form === "domain") {
    const fault = (form === "email" ? emailFault : domainFault)(value.normalize("NFKC"));
    if (fault !== undefined) return refused(form, fault);
  }
  return firstBoundFault(rule, made.canonical) ?? made;
}

/** Applies everything but the rules of addresses and domains, and the bounds that a deployment declares. */
function canonicalOf(rule: CanonicalRule, value: string, maxBytes: number): Canonical | Refused {
  if (value.length === 0) return refused("empty", "The value is empty.");
  // Each UTF-16 unit takes at least one byte in UTF-8, so this check bounds all the work below.
  if (value.length > maxBytes) return tooLong("The value", maxBytes);

  // The fast path: ASCII is already normalized and has one script, so it needs one loop and no table.
  let upperCase = false;
  let space = false;
  let segmentStart = 0;
  let badSegmentStart = -1;
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit >= 0x80) return canonicalizeUnicode(rule, value, maxBytes);
    if (unit <= SPACE || unit === 0x7f) {
      if (unit !== SPACE) return refusedCharacter("control", { codePoint: unit, index }, "");
      space = true;
    }
    if (unit >= 0x41 && unit <= 0x5a) upperCase = true;
    else if (unit === SLASH) {
      if (badSegmentStart < 0 && isBadSegment(value, segmentStart, index)) badSegmentStart = segmentStart;
      segmentStart = index + 1;
    }
  }
  if (rule.form === "path") {
    if (badSegmentStart < 0 && isBadSegment(value, segmentStart, value.length))
      badSegmentStart = segmentStart;
    if (badSegmentStart >= 0) return refusedSegment(badSegmentStart);
  }
  const misplaced = space ? misplacedSpace(rule, value) : undefined;
  if (misplaced) return misplaced;
  return { ok: true, canonical: upperCase && rule.case === "folded" ? value.toLowerCase() : value };
}

function canonicalizeUnicode(rule: CanonicalRule, value: string, maxBytes: number): Canonical | Refused {
  const typed = firstRefusedCharacter(value);
  if (typed) return refusedCharacter(typed.refusal, typed, "");
  if (utf8Length(value) > maxBytes) return tooLong("The value", maxBytes);

  let text = value;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const folded = toFixedPoint(rule, text);
    if (folded === undefined) break;
    const fault = firstFault(rule, folded, maxBytes);
    if (fault) return fault;
    const read = rule.script === "single" ? readPath(rule, folded) : folded;
    if (read === folded) return { ok: true, canonical: folded };
    // The text is another one now, so all rules are checked again.
    text = read;
  }
  return refused("ill_formed", "The value has no stable canonical form.");
}

/** Checks canonical text. */
function firstFault(rule: CanonicalRule, canonical: string, maxBytes: number): Refused | undefined {
  // Normalization may make a value longer. In all known runtimes it produces no refused character from
  // accepted ones (a test proves it). What is stored must not depend on that, so it is checked here too.
  const made = firstRefusedCharacter(canonical);
  if (made) return refusedCharacter(made.refusal, made, OF_CANONICAL);
  if (utf8Length(canonical) > maxBytes) return tooLong("The canonical form", maxBytes);

  // Checked after normalization, which turns look-alikes of slashes and dots into slashes and dots, and makes
  // wide and narrow forms of a letter equal.
  const badSegmentStart = rule.form === "path" ? firstBadSegment(canonical) : -1;
  if (badSegmentStart >= 0) return refusedSegment(Array.from(canonical.slice(0, badSegmentStart)).length);
  const misplaced = misplacedSpace(rule, canonical);
  if (misplaced || rule.script === "any") return misplaced;
  // Unicode's data on names and look-alikes is about folded text.
  const beyond = rule.case === "exact" ? firstBeyondAscii(canonical) : undefined;
  if (beyond) return refusedCharacter("not_ascii", beyond, OF_CANONICAL);
  const fault = firstNameFault(canonical);
  if (fault) return refusedCharacter(fault.refusal, fault, OF_CANONICAL);
  const mixed = firstMixedScript(canonical, rule.form === "path" ? "/" : undefined);
  return mixed && refusedMixture(mixed, rule.form);
}

function firstBeyondAscii(text: string): CharacterPosition | undefined {
  const index = Array.from(text).findIndex((character) => character > "\u007f");
  return index < 0 ? undefined : { codePoint: Array.from(text)[index]?.codePointAt(0) ?? 0, index };
}

/**
 * Refuses a space at the start or the end, also of a path segment. In names it also refuses two spaces in a
 * row, which browsers show as one.
 */
function misplacedSpace(rule: CanonicalRule, text: string): Refused | undefined {
  const isEdge = (neighbor: string | undefined) =>
    neighbor === undefined ||
    (rule.script === "single" && neighbor === " ") ||
    (rule.form === "path" && neighbor === "/");
  for (let at = text.indexOf(" "); at >= 0; at = text.indexOf(" ", at + 1)) {
    if (!isEdge(text[at - 1]) && !isEdge(text[at + 1])) continue;
    const index = Array.from(text.slice(0, at)).length;
    return refused("space", `The space at index ${index} of the canonical form does not separate two words.`);
  }
  return undefined;
}

const readPath = (rule: CanonicalRule, text: string): string =>
  rule.form === "path" ? text.split("/").map(readInFirstScript).join("/") : readInFirstScript(text);

/**
 * Applies NFKC, case folding and NFC until the text no longer changes. If canonical text had another
 * canonical form, a name could be taken twice.
 */
function toFixedPoint(rule: CanonicalRule, value: string): string | undefined {
  let text = value;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const normalized = text.normalize("NFKC");
    const next = (rule.case === "folded" ? caseFold(normalized) : normalized).normalize("NFC");
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

/** Checks the bounds that the rule declares. The canonical form must not depend on them. */
function firstBoundFault(rule: CanonicalRule, canonical: string): Refused | undefined {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = rule;
  if (minLength > 0 || maxLength < canonical.length) {
    const length = Array.from(canonical).length;
    if (length < minLength || length > maxLength) {
      const bound = length < minLength ? `at least ${minLength}` : `at most ${maxLength}`;
      return refused("length", `The canonical form has ${length} characters; this type allows ${bound}.`);
    }
  }
  if (isMatch(rule, canonical)) return undefined;
  return refused("pattern", `The canonical form does not match the type's pattern, ${rule.pattern ?? ""}.`);
}

// Details give an index and a code point, never the value, because they appear in logs and to other people.

function refused(refusal: CanonicalRefusal, detail: string): Refused {
  return { ok: false, refusal, detail };
}

function tooLong(what: string, maxBytes: number): Refused {
  return refused("too_long", `${what} is longer than ${maxBytes} bytes of UTF-8.`);
}

function refusedCharacter(refusal: AnyCharacterRefusal, position: CharacterPosition, where: string): Refused {
  return refused(refusal, `${describe(position)}${where} ${WHAT[refusal]}.`);
}

function refusedSegment(index: number): Refused {
  return refused(
    "bad_segment",
    `The path segment at index ${index} of the canonical form is empty, "." or "..".`,
  );
}

function refusedMixture(position: CharacterPosition, form: CanonicalRule["form"]): Refused {
  const whole = form === "path" ? "path segment" : "value";
  return refused(
    "mixed_script",
    `${describe(position)} of the canonical form has another script than the rest of its ${whole}.`,
  );
}

function describe({ codePoint, index }: CharacterPosition): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")} at index ${index}`;
}
