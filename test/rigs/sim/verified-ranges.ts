import { DigestSum, digestWordsOf } from "../../../src/common/digest.ts";
import { namesOf, digestedOf } from "../../../src/users/cell/verification/row-names.ts";
import type { IdRange, RangeDigest, VerifiedRow } from "../../../src/users/cell/verification/ports.ts";
import { compareBytes, sourceOrder } from "../../../src/common/source-order.ts";
import { shipped } from "../../support/types.ts";
import type { Judge } from "./judge/judge.ts";

interface Asked {
  ranges: readonly IdRange[];
  digests: readonly RangeDigest[];
  asOfMs: number;
  rows: readonly VerifiedRow[];
  listed: IdRange[];
}

/**
 * Checks what a verification treats as equal: ranges whose digests it requested and whose records it did not
 * list. Such a range must have been equal, without a hold and without recent changes (V4).
 */
export class VerifiedRanges {
  readonly #cell: string;
  readonly #judge: Judge;
  readonly #recentMs: number;
  #rows: VerifiedRow[] = [];
  #asked: Asked | undefined;
  #storedAfter: string | undefined;

  constructor(cell: string, judge: Judge, recentMs: number) {
    this.#cell = cell;
    this.#judge = judge;
    this.#recentMs = recentMs;
  }

  read(rows: readonly VerifiedRow[]): void {
    this.#rows.push(...rows);
  }

  digested(
    ranges: readonly IdRange[],
    { digests, asOfMs }: { digests: readonly RangeDigest[]; asOfMs: number },
  ): void {
    const rows = this.#rows;
    this.advance();
    this.#asked = { ranges, digests, asOfMs, rows, listed: [] };
  }

  /** The rows that were read last are compared with this list. */
  listed(range: IdRange): void {
    this.#asked?.listed.push(range);
    this.#rows = [];
  }

  /**
   * A cursor was saved after this source id. A cursor that is saved when a verification is aborted or asks
   * for approval proves nothing about what was seen.
   */
  stored(after: string): void {
    this.#storedAfter = after;
  }

  ends(isDone: boolean): void {
    if (isDone || this.#storedAfter !== undefined) this.advance();
    else this.abort();
  }

  /** The verification ended without continuing past the range. */
  abort(): void {
    this.#storedAfter = undefined;
    this.#asked = undefined;
  }

  /** The verification continued: everything up to the saved cursor is done. */
  advance(): void {
    const through = this.#storedAfter ?? "";
    this.#storedAfter = undefined;
    const asked = this.#asked;
    this.#asked = undefined;
    this.#rows = [];
    if (asked === undefined) return;
    for (const [index, range] of asked.ranges.entries()) {
      const isPassed = through === "" || (range.upTo !== undefined && !isAfter(range.upTo, through));
      if (isPassed && !asked.listed.some((each) => overlap(each, range)))
        this.#checkTreatedAsEqual(range, asked.digests[index], asked);
    }
  }

  #checkTreatedAsEqual(range: IdRange, digest: RangeDigest | undefined, { rows, asOfMs }: Asked): void {
    const its = rows.filter(({ id }) => isIn(id, range));
    const [from, to] = [range.after || "the beginning", range.upTo ?? "the end"];
    const where = `of cell ${this.#cell} from ${from} to ${to}`;
    const check = (isRight: boolean, what: string): void =>
      this.#judge.check("I21", isRight, () => `the range ${where} was treated as equal ${what}`);
    check(digest?.held === false, "but has a hold");
    const newestMs = digest?.newestUpdatedAtMs;
    check(newestMs === undefined || newestMs <= asOfMs - this.#recentMs, "but has a recent claim");
    check(!its.some(({ ageMs }) => ageMs !== undefined && ageMs < this.#recentMs), "but has a recent row");
    const sum = new DigestSum();
    for (const name of its.flatMap(({ claims }) => namesOf(shipped, claims).names))
      sum.add(digestWordsOf(digestedOf(shipped, name)));
    check(digest?.count === sum.count && digest.hash === sum.hash, "but its rows and claims differ");
    this.#judge.see("V4");
  }
}

const isAfter = (id: string, other: string): boolean =>
  other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;
const isIn = (id: string, { after, upTo }: IdRange): boolean =>
  isAfter(id, after) && (upTo === undefined || !isAfter(id, upTo));

/** Ranges exclude `after` and include `upTo`. */
const overlap = (a: IdRange, b: IdRange): boolean => endsAfter(a, b.after) && endsAfter(b, a.after);
const endsAfter = ({ upTo }: IdRange, after: string): boolean => upTo === undefined || isAfter(upTo, after);
