import type {
  DigestCursor,
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "../messages.ts";
import { compareBytes } from "../source-order.ts";
import type { ChangeCounts } from "./change-counts.ts";
import {
  afterSource,
  FIRST_HOLD,
  SOURCE_ORDER_END,
  type ClaimRange,
  type ScanStore,
  type WantedTypes,
} from "./scan-store.ts";

type DigestQuestion = Pick<DigestRecordsRequest, "cell" | "sourceType" | "bucketTypes" | "ranges" | "cursor">;

const START: DigestCursor = { scan: { behind: FIRST_HOLD, held: [] }, range: 0, rest: null };

/** A digest that proves nothing. */
const VOID: RangeDigest = { count: 0, words: [0, 0, 0, 0], held: true, newestUpdatedAtMs: null };

/**
 * Returns the digests of as many ranges as can be read with one message, each as of one moment of this shard
 * (R4, M7), and the number of rows that it has read. It asks no other object and writes nothing.
 */
export function digestRecords(
  store: ScanStore,
  changes: ChangeCounts,
  scanRows: number,
  question: DigestQuestion,
): { value: DigestRecordsAnswer; rows: number } {
  const reading = new DigestReading(store, changes, scanRows, question);
  const value = reading.run();
  return { value, rows: reading.rows };
}

class DigestReading {
  readonly #store: ScanStore;
  readonly #changes: ChangeCounts;
  readonly #cell: string;
  readonly #sourceType: number;
  readonly #types: WantedTypes;
  readonly #ranges: readonly SourceRange[];
  readonly #cursor: DigestCursor;
  readonly #held: Set<number>;
  readonly #scanRows: number;
  #rowsLeft: number;
  /** The number of claims and holds that were read. */
  rows = 0;

  constructor(store: ScanStore, changes: ChangeCounts, scanRows: number, question: DigestQuestion) {
    this.#store = store;
    this.#changes = changes;
    this.#cell = question.cell;
    this.#sourceType = question.sourceType;
    this.#types = question.bucketTypes;
    this.#ranges = question.ranges;
    this.#cursor = question.cursor ?? START;
    this.#held = new Set(this.#cursor.scan.held);
    this.#scanRows = scanRows;
    this.#rowsLeft = scanRows;
  }

  run(): DigestRecordsAnswer {
    const behind = this.#scanHolds();
    if (behind !== null) return { digests: [], next: { ...this.#cursor, scan: this.#scanAt(behind) } };
    const digests: RangeDigest[] = [];
    let { range: index, rest } = this.#cursor;
    for (; index < this.#ranges.length; index += 1, rest = null) {
      const isFirst = this.#rowsLeft === this.#scanRows;
      if (this.#rowsLeft <= 0) return { digests, next: this.#next(index, null) };
      const part = this.#read(index, rest, isFirst);
      if (part === undefined) return { digests, next: this.#next(index, null) };
      digests.push(part.digest);
      if (part.rest !== null) return { digests, next: this.#next(index, part.rest) };
    }
    return { digests, next: null };
  }

  /**
   * Continues the scan of the holds. Returns where it stopped, or null if it is complete.
   *
   * The holds are read before the claims. A hold that is made after the scan has passed its place is newer
   * than the call. If it ends before the claims are read, they show the change.
   */
  #scanHolds(): DigestCursor["scan"]["behind"] {
    const { behind } = this.#cursor.scan;
    if (behind === null) return null;
    const { range, isLast, count } = this.#store.nextHolds(behind, this.#scanRows);
    this.rows += count;
    this.#rowsLeft -= count;
    const bounds = { from: this.#ranges[0]?.after ?? "", to: endOf(this.#ranges.at(-1)) };
    const source = { cell: this.#cell, sourceType: this.#sourceType, ...bounds };
    for (const order of this.#store.touchedSources(source, this.#types, range)) {
      const index = rangeOf(this.#ranges, order);
      if (index !== undefined) this.#held.add(index);
    }
    return isLast ? null : range.upTo;
  }

  #scanAt(behind: DigestCursor["scan"]["behind"]): DigestCursor["scan"] {
    return { behind, held: [...this.#held].toSorted((a, b) => a - b) };
  }

  #next(range: number, rest: DigestCursor["rest"]): DigestCursor {
    return { scan: this.#scanAt(null), range, rest };
  }

  /**
   * Reads a range, or its rest. A range that doesn't fit into the rows that are left is left to the next
   * message. If nothing else was read for this message, a part of it is read.
   */
  #read(
    index: number,
    rest: DigestCursor["rest"],
    isFirst: boolean,
  ): { digest: RangeDigest; rest: DigestCursor["rest"] } | undefined {
    const given = this.#ranges[index];
    if (given === undefined) throw new Error(`there is no range ${index}`);
    const changes = rest === null ? undefined : this.#changes.versionOf(this.#cell);
    // The parts of the range would be of different moments, so what is left of it is not read.
    if (rest !== null && rest.changes !== changes) return { digest: VOID, rest: null };
    const range: ClaimRange = {
      cell: this.#cell,
      sourceType: this.#sourceType,
      after: rest?.behind ?? afterSource(given.after),
      upTo: afterSource(endOf(given)),
    };
    const rows = this.#rowsLeft;
    const { visited, count, newest, ...sums } = this.#store.digest(range, this.#types, rows);
    this.rows += visited + RANGE_ROWS;
    const behind = visited < rows ? undefined : this.#store.claimPosition(range, rows);
    if (behind !== undefined && !isFirst) return undefined;
    // An empty range takes time too.
    this.#rowsLeft -= visited + RANGE_ROWS;
    const digest: RangeDigest = {
      count,
      words: [sums.word_0, sums.word_1, sums.word_2, sums.word_3],
      held: this.#held.has(index),
      newestUpdatedAtMs: newest,
    };
    return {
      digest,
      rest: behind === undefined ? null : { behind, changes: this.#changes.versionOf(this.#cell) },
    };
  }
}

/** A range takes as long as this number of rows, even if it is empty. */
const RANGE_ROWS = 2;

const endOf = (range: SourceRange | undefined): string => range?.upTo ?? SOURCE_ORDER_END;

/** Returns the index of the range that contains a source order. The ranges are in order. */
function rangeOf(ranges: readonly SourceRange[], order: string): number | undefined {
  let [from, to] = [0, ranges.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareBytes(endOf(ranges[middle]), order) >= 0) to = middle;
    else from = middle + 1;
  }
  const found = ranges[from];
  return found !== undefined && compareBytes(found.after, order) < 0 ? from : undefined;
}
