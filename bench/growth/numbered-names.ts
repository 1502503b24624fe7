import { canonicalize } from "../../src/core/canonical/canonicalize.ts";
import { defaultLimits } from "../../src/core/limits.ts";
import { Names } from "../client/names.ts";

/** More than the real list has. */
const ALL = 1_000_000;
/**
 * A prime that divides no length of the list: multiples of it come by every name once before one comes again.
 */
const STRIDE = 7_919;

export interface Name {
  value: string;
  canonical: string;
}

/**
 * Real names with a mark and a number, any number of them, each found by its index without those before it.
 */
export class NumberedNames {
  readonly #stems: readonly Name[];

  constructor(mark: string) {
    const byCanonical = new Map<string, Name>();
    for (const value of Names.kept(mark, ALL)) {
      const made = canonicalize("ROUTES", value, defaultLimits.valueBytes);
      if (made.ok) byCanonical.set(made.canonical, { value, canonical: made.canonical });
    }
    this.#stems = [...byCanonical.values()];
  }

  /** The digits are their own canonical form, so only the stems had to be made canonical. */
  at(index: number): Name {
    const stem = this.#stems[index % this.#stems.length] ?? { value: "", canonical: "" };
    const number = Math.floor(index / this.#stems.length);
    return { value: `${stem.value}${number}`, canonical: `${stem.canonical}${number}` };
  }

  /** As `at`, but neighbours are far apart in the alphabet, as names are that come one after another. */
  scattered(index: number): Name {
    const within = index % this.#stems.length;
    return this.at(index - within + ((within * STRIDE) % this.#stems.length));
  }

  /**
   * The indexes below `count`, nearly in the order of the names: a table that is filled in its own order is
   * filled fast.
   */
  *inNameOrder(count: number): Generator<number> {
    const { length } = this.#stems;
    for (let stem = 0; stem < length; stem += 1)
      for (let index = stem; index < count; index += length) yield index;
  }
}

export const storedNames = (): NumberedNames => new NumberedNames("stored");
export const outstandingNames = (): NumberedNames => new NumberedNames("outstanding");
