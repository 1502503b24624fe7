import type { Limits } from "../../../common/limits.ts";
import type { HoldPosition } from "../../kernel/messages.ts";
import type {
  DigestCursor,
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "./messages.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { compareBytes } from "../../../common/source-order.ts";
import type { ChangeCounts } from "./change-counts.ts";
import { FIRST_HOLD, type HeldNames } from "../../kernel/shard/held-names.ts";
import type { Inquirer } from "../../kernel/shard/inquirer.ts";
import { MAX_HOLDS } from "../../kernel/shard/inquiry-queue.ts";
import type { ClaimReads } from "../../kernel/shard/read-queue.ts";
import { bucketText, executionKey } from "../../kernel/shard/rows.ts";
import {
  afterSource,
  SOURCE_ORDER_END,
  type ClaimRange,
  type ScanStore,
  type TouchingHoldRow,
  type WantedTypes,
} from "./scan-store.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { ShardStore } from "../../kernel/shard/store.ts";

type DigestQuestion = Pick<
  DigestRecordsRequest,
  "cell" | "sourceType" | "bucketTypes" | "ranges" | "cursor" | "traces"
>;

/** The holds that were scanned for one message, and those that touch the ranges. */
interface HoldScan {
  /** Where the scan continues. Null: no hold follows. */
  next: HoldPosition | null;
  touching: readonly TouchingHoldRow[];
}

const START: DigestCursor = { scan: { behind: FIRST_HOLD, held: [] }, range: 0, rest: null };

/** A digest that proves nothing. */
const VOID: RangeDigest = { count: 0, words: [0, 0, 0, 0], held: true, newestUpdatedAtMs: null };

interface Needs {
  readonly store: Pick<ShardStore, "holdsOn">;
  readonly scans: ScanStore;
  readonly log: Pick<ShardLog, "held">;
  readonly changes: ChangeCounts;
  readonly inquirer: Pick<Inquirer, "inquire">;
  readonly claimReads: ClaimReads;
  readonly limits: Pick<Limits, "scanRows">;
}

/** Digests of ranges of a cell's claims (R4). It keeps nothing in memory between two calls. */
export class DigestReader {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Returns the digests of as many ranges as can be read with one message, each as of one moment of this
   * shard (M7). It first asks the cell's ledger about the holds that touch the ranges, so that the digests
   * have what an acknowledged decision has changed.
   */
  async digestRecords(question: DigestQuestion): Promise<Result<DigestRecordsAnswer>> {
    const first = await this.#part.claimReads.run(question.cell, () => {
      const reading = this.#reading(question);
      const scan = reading.scanHolds();
      const value = scan.touching.length > 0 ? { scan } : { answer: reading.answer(scan) };
      return { value, rows: reading.rows };
    });
    if (!first.ok) return first;
    if (first.value.answer !== undefined) return ok(first.value.answer);
    const { scan } = first.value;
    await this.#part.inquirer.inquire(scan.touching, question.traces);
    return this.#part.claimReads.run(question.cell, () => {
      const reading = this.#reading(question);
      reading.count(scan.touching.length);
      const touching = this.#stillThere(scan.touching);
      return { value: reading.answer({ ...scan, touching }), rows: reading.rows };
    });
  }

  #reading(question: DigestQuestion): DigestReading {
    return new DigestReading(this.#part, question);
  }

  /** The holds that have not ended meanwhile. Those that began meanwhile are newer than the call. */
  #stillThere(asked: readonly TouchingHoldRow[]): TouchingHoldRow[] {
    const keys = asked.map(({ bucket_type: type, canonical }) => ({ type, canonical }));
    const found = this.#part.store.holdsOn(keys);
    return asked.filter((hold) => {
      const now = found.get(bucketText(hold.bucket_type, hold.canonical));
      return now !== undefined && executionKey(now) === executionKey(hold);
    });
  }
}

class DigestReading {
  readonly #store: ScanStore;
  readonly #held: HeldNames;
  readonly #changes: ChangeCounts;
  readonly #cell: string;
  readonly #sourceType: number;
  readonly #types: WantedTypes;
  readonly #ranges: readonly SourceRange[];
  readonly #cursor: DigestCursor;
  /** The indexes of the ranges that a hold touches. */
  readonly #touched: Set<number>;
  readonly #scanRows: number;
  #rowsLeft: number;
  /** The number of claims and holds that were read. */
  rows = 0;

  constructor({ scans, log, changes, limits: { scanRows } }: Needs, question: DigestQuestion) {
    this.#store = scans;
    this.#held = log.held;
    this.#changes = changes;
    this.#cell = question.cell;
    this.#sourceType = question.sourceType;
    this.#types = question.bucketTypes;
    this.#ranges = question.ranges;
    this.#cursor = question.cursor ?? START;
    this.#touched = new Set(this.#cursor.scan.held);
    this.#scanRows = scanRows;
    this.#rowsLeft = scanRows;
  }

  /** Reads the ranges, if the scan of the holds is complete. */
  answer({ next, touching }: HoldScan): DigestRecordsAnswer {
    for (const order of touching.flatMap((hold) => [hold.next, hold.present])) {
      const index = order === null ? undefined : rangeOf(this.#ranges, order);
      if (index !== undefined) this.#touched.add(index);
    }
    if (next !== null) return { digests: [], next: { ...this.#cursor, scan: this.#scanAt(next) } };
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
   * Continues the scan of the holds, up to as many that touch the ranges as one message may ask about.
   *
   * The holds are read before the claims. A hold that is made after the scan has passed its place is newer
   * than the call. If it ends before the claims are read, they show the change.
   */
  scanHolds(): HoldScan {
    const { behind } = this.#cursor.scan;
    if (behind === null) return { next: null, touching: [] };
    const { entries, next } = this.#held.after(behind, this.#scanRows, this.#cell);
    const limit = Math.min(Math.ceil(this.#scanRows / ROWS_PER_ASKED_HOLD), MAX_HOLDS);
    const bounds = { from: this.#ranges[0]?.after ?? "", to: endOf(this.#ranges.at(-1)) };
    const source = { sourceType: this.#sourceType, ...bounds };
    const touching: TouchingHoldRow[] = [];
    for (const entry of entries) {
      touching.push(...this.#store.touchingHolds(source, this.#types, [entry]));
      this.count(entry.left);
      const isLast = next === null && entry === entries.at(-1);
      if (touching.length >= limit && !isLast) return { next: [entry.since, entry.part], touching };
    }
    return { next, touching };
  }

  count(rows: number): void {
    this.rows += rows;
    this.#rowsLeft -= rows;
  }

  #scanAt(behind: DigestCursor["scan"]["behind"]): DigestCursor["scan"] {
    return { behind, held: [...this.#touched].toSorted((a, b) => a - b) };
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
      held: this.#touched.has(index),
      newestUpdatedAtMs: newest,
    };
    return {
      digest,
      rest: behind === undefined ? null : { behind, changes: this.#changes.versionOf(this.#cell) },
    };
  }
}

/** A hold that is asked about, and then ends, takes as long as this number of rows. */
const ROWS_PER_ASKED_HOLD = 4;

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
