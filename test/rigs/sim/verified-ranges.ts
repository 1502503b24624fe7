import { DigestSum, digestWordsOf } from "../../../src/core/digest.ts";
import { namesOf, digestedOf } from "../../../src/cell/verification/row-names.ts";
import type { IdRange, RangeDigest, VerifiedRow } from "../../../src/cell/verification/ports.ts";
import { compareBytes, sourceOrder } from "../../../src/core/source-order.ts";
import type { Judge } from "./judge/judge.ts";

interface Asked {
  ranges: readonly IdRange[];
  digests: readonly RangeDigest[];
  asOfMs: number;
  rows: readonly VerifiedRow[];
  listed: IdRange[];
}

/**
 * What a verification takes for equal, seen from outside: ranges whose digests it asked for and whose records it did not list. Such a range was
 * equal, and had no hold and nothing young in it (rule V4).
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

  told(
    ranges: readonly IdRange[],
    { digests, asOfMs }: { digests: readonly RangeDigest[]; asOfMs: number },
  ): void {
    const rows = this.#rows;
    this.goesOn();
    this.#asked = { ranges, digests, asOfMs, rows, listed: [] };
  }

  /** What was read just before was to be compared with it. */
  listed(range: IdRange): void {
    this.#asked?.listed.push(range);
    this.#rows = [];
  }

  /** A place was stored, behind this source id. What is stored when a verification breaks off or asks says nothing of what it has seen. */
  stored(after: string): void {
    this.#storedAfter = after;
  }

  ends(isDone: boolean): void {
    if (isDone || this.#storedAfter !== undefined) this.goesOn();
    else this.breaksOff();
  }

  /** The verification ended before it had gone on. */
  breaksOff(): void {
    this.#storedAfter = undefined;
    this.#asked = undefined;
  }

  /** The verification has gone on to what comes next, with everything up to the stored place. */
  goesOn(): void {
    const through = this.#storedAfter ?? "";
    this.#storedAfter = undefined;
    const asked = this.#asked;
    this.#asked = undefined;
    this.#rows = [];
    if (asked === undefined) return;
    for (const [index, range] of asked.ranges.entries()) {
      const isPassed = through === "" || (range.upTo !== undefined && !isBehind(range.upTo, through));
      if (isPassed && !asked.listed.some((each) => overlap(each, range)))
        this.#wasTaken(range, asked.digests[index], asked);
    }
  }

  #wasTaken(range: IdRange, digest: RangeDigest | undefined, { rows, asOfMs }: Asked): void {
    const its = rows.filter(({ id }) => isIn(id, range));
    const where = `of cell ${this.#cell} behind ${range.after || "the beginning"} up to ${range.upTo ?? "the end"}`;
    const check = (isRight: boolean, what: string): void =>
      this.#judge.check("I21", isRight, () => `the range ${where} was taken for equal, ${what}`);
    check(digest?.held === false, "and has a hold");
    const newestMs = digest?.newestUpdatedAtMs;
    check(newestMs === undefined || newestMs <= asOfMs - this.#recentMs, "and has a young claim");
    check(!its.some(({ ageMs }) => ageMs !== undefined && ageMs < this.#recentMs), "and has a young row");
    const sum = new DigestSum();
    for (const name of its.flatMap(({ claims }) => namesOf(claims).names))
      sum.add(digestWordsOf(digestedOf(name)));
    check(digest?.count === sum.count && digest.hash === sum.hash, "and its rows and claims differ");
    this.#judge.see("V4");
  }
}

const isBehind = (id: string, other: string): boolean =>
  other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;
const isIn = (id: string, { after, upTo }: IdRange): boolean =>
  isBehind(id, after) && (upTo === undefined || !isBehind(id, upTo));

/** Both are without their `after`, and with their `upTo`. */
const overlap = (a: IdRange, b: IdRange): boolean => endsBehind(a, b.after) && endsBehind(b, a.after);
const endsBehind = ({ upTo }: IdRange, after: string): boolean => upTo === undefined || isBehind(upTo, after);
