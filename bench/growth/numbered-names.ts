import { canonicalize } from "../../src/common/canonical/canonicalize.ts";
import { defaultLimits } from "../../src/common/limits.ts";
import { ruleOf } from "../../test/support/types.ts";
import { Names } from "../client/names.ts";

/** More than the number of real names. */
const ALL = 1_000_000;
/**
 * A prime that does not divide the number of names, so its multiples reach every name once before any
 * repeats.
 */
const STRIDE = 7_919;

export interface Name {
  value: string;
  canonical: string;
}

/**
 * An unlimited sequence of real names with a mark and a number. Any of them can be computed from its index
 * alone.
 */
export class NumberedNames {
  readonly #stems: readonly Name[];

  constructor(mark: string) {
    const rule = ruleOf("ROUTES");
    const byCanonical = new Map<string, Name>();
    for (const value of Names.kept(mark, ALL)) {
      const made = canonicalize(rule, value, defaultLimits.valueBytes);
      if (made.ok) byCanonical.set(made.canonical, { value, canonical: made.canonical });
    }
    this.#stems = [...byCanonical.values()];
  }

  /** Digits do not change in the canonical form, so only the stems have to be canonicalized. */
  at(index: number): Name {
    const stem = this.#stems[index % this.#stems.length] ?? { value: "", canonical: "" };
    const number = Math.floor(index / this.#stems.length);
    return { value: `${stem.value}${number}`, canonical: `${stem.canonical}${number}` };
  }

  /** As `at`, but consecutive names are far apart in the alphabet, as they are in practice. */
  scattered(index: number): Name {
    const within = index % this.#stems.length;
    return this.at(index - within + ((within * STRIDE) % this.#stems.length));
  }

  /**
   * The indexes below `count`, nearly in the order of their names, because inserting in key order is fast.
   */
  *inNameOrder(count: number): Generator<number> {
    const { length } = this.#stems;
    for (let stem = 0; stem < length; stem += 1)
      for (let index = stem; index < count; index += length) yield index;
  }
}

export const storedNames = (): NumberedNames => new NumberedNames("stored");
export const outstandingNames = (): NumberedNames => new NumberedNames("outstanding");
