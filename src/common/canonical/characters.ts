import { decodeRuns, lazily, valueAt } from "./code-point-runs.ts";
import { REFUSAL_RUNS, REFUSALS } from "./tables.ts";

const refusals = lazily(() => decodeRuns(REFUSAL_RUNS));

export type CharacterRefusal = Exclude<(typeof REFUSALS)[number], "">;

/** A code point of a text, and its index counted in code points. */
export interface CharacterPosition {
  readonly codePoint: number;
  readonly index: number;
}

/** Returns the first code point of a text that no name may contain, and the reason. */
export function firstRefusedCharacter(
  text: string,
): (CharacterPosition & { readonly refusal: CharacterRefusal }) | undefined {
  const runs = refusals();
  let index = 0;
  for (let unit = 0; unit < text.length; index += 1) {
    // A lone surrogate is read as a code point of its own, and the table lists it as ill-formed.
    const codePoint = text.codePointAt(unit) ?? 0;
    unit += codePoint > 0xffff ? 2 : 1;
    const refusal = REFUSALS[valueAt(runs, codePoint)];
    if (refusal) return { codePoint, index, refusal };
  }
  return undefined;
}

/**
 * Returns the length in UTF-8 of well-formed text. A surrogate pair takes four bytes, so each half counts as
 * two.
 */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff)) bytes += 2;
    else bytes += 3;
  }
  return bytes;
}
