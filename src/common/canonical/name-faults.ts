import type { CharacterPosition } from "./characters.ts";
import { decodeRuns, lazily, valueAt } from "./code-point-runs.ts";
import { NAME_KIND_RUNS, NAME_KINDS } from "./tables.ts";

const kindRuns = lazily(() => decodeRuns(NAME_KIND_RUNS));

export type NameKind = (typeof NAME_KINDS)[number];

/** What a code point of canonical text is in a name. */
export const nameKind = (codePoint: number): NameKind =>
  NAME_KINDS[valueAt(kindRuns(), codePoint)] ?? "restricted";

/** UTS #39 forbids longer sequences of nonspacing marks. */
const MAX_MARKS = 4;

const DOT_ABOVE = 0x307;
const SMALL_L = 0x6c;

export type NameRefusal = "restricted" | "mark";

/**
 * Returns the first code point that makes a name easy to confuse with another, by the rules of UTS #39:
 * characters that are not recommended for identifiers, and marks that a reader may overlook.
 */
export function firstNameFault(
  text: string,
): (CharacterPosition & { readonly refusal: NameRefusal }) | undefined {
  let base: Base = { codePoint: 0, kind: "other", marks: [] };
  let index = 0;
  for (const character of text) {
    const codePoint = character.codePointAt(0) ?? 0;
    const kind = nameKind(codePoint);
    if (kind === "restricted") return { codePoint, index, refusal: "restricted" };
    if (kind !== "mark") base = { codePoint, kind, marks: undefined };
    else if (isConfusingMark(codePoint, base)) return { codePoint, index, refusal: "mark" };
    index += 1;
  }
  return undefined;
}

/** A character with the marks on it. The marks of a composed letter are found when another mark follows. */
interface Base {
  codePoint: number;
  readonly kind: NameKind;
  marks: number[] | undefined;
}

/** Marks on digits and punctuation belong to no language, and `l` with a dot above looks like `i`. */
function isConfusingMark(mark: number, base: Base): boolean {
  if (base.marks === undefined) {
    const [letter = 0, ...rest] = codePointsOf(String.fromCodePoint(base.codePoint).normalize("NFD"));
    base.codePoint = letter;
    base.marks = rest.filter((part) => nameKind(part) === "mark");
  }
  const isRepeated = base.marks.at(-1) === mark;
  base.marks.push(mark);
  const isDotOfI = mark === DOT_ABOVE && base.codePoint === SMALL_L;
  return base.kind === "other" || isRepeated || isDotOfI || base.marks.length > MAX_MARKS;
}

function codePointsOf(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0) ?? 0);
}
