import type { BucketKey, ClaimRecord, DigestWords, Envelope, HoldPosition } from "../../kernel/messages.ts";

/** The place of a record in a cell's list: its source order, the number of its bucket type, its canonical. */
export type RecordPosition = readonly [order: string, bucketType: number, canonical: string];

/**
 * Asks for the records of one cell and source type whose source order is in (after, upTo], in that order
 * (R3). `upTo` null means to the end.
 */
export interface ListRecordsRequest extends Envelope {
  cell: string;
  sourceType: number;
  /** Null: claims of all bucket types. */
  bucketTypes: number[] | null;
  after: string;
  upTo: string | null;
  /** The cursor of the previous answer. Null: from the beginning of the range. */
  cursor: ListCursor | null;
  limit: number;
}

/** Where a listing continues. All records up to `behind` are listed. */
export interface ListCursor {
  behind: RecordPosition;
  /** The unfinished scan of the shard's holds for the records behind `behind`. Null: it has not begun. */
  scan: ArrivalScan | null;
}

/** What a scan has found of the holds that arrive in a range: the first of them in the order of the list. */
export interface ArrivalScan {
  /** Null: the scan is complete. */
  behind: HoldPosition | null;
  found: RecordPosition[];
  /** True if more were found than are in `found`. */
  isCut: boolean;
}

export interface ListRecordsAnswer {
  /** Up to `limit` records. There may be none although more follow. */
  records: ClaimRecord[];
  /** Where the list continues. Null: there are no more records in the range. */
  next: ListCursor | null;
}

/** An interval of source orders, (after, upTo]. */
export interface SourceRange {
  after: string;
  /** Null means to the end. */
  upTo: string | null;
}

/**
 * Asks for the digests of one cell's claims of one source type, range by range (R4). The ranges are in
 * ascending order and do not overlap.
 */
export interface DigestRecordsRequest extends Envelope {
  cell: string;
  sourceType: number;
  /** Null: claims of all bucket types. */
  bucketTypes: number[] | null;
  ranges: SourceRange[];
  /** The cursor of the previous answer. Null: from the first range. */
  cursor: DigestCursor | null;
}

/** Where a shard continues to read digests. */
export interface DigestCursor {
  /** The scan of the shard's holds. It comes before the first digest. */
  scan: {
    /** Null: the scan is complete. */
    behind: HoldPosition | null;
    /** The indexes of the ranges that a hold touches, in ascending order. */
    held: number[];
  };
  /** The index of the next range. */
  range: number;
  /** The unfinished part of that range. Null: nothing of it has been read. */
  rest: { behind: RecordPosition; changes: string } | null;
}

export interface RangeDigest {
  count: number;
  /** The sum of the claims' digest words, each modulo 2^32. */
  words: DigestWords;
  /**
   * True if a hold touches the range, or if the cell's claims changed while
   * the range was read in parts. Such a digest proves nothing.
   */
  held: boolean;
  newestUpdatedAtMs: number | null;
}

/**
 * The digests of the next ranges, in order, from the range of the request's cursor on. If `next` has a
 * `rest`, the last digest covers only a part of its range, and the next answer begins with another part of
 * that range. The parts add up.
 */
export interface DigestRecordsAnswer {
  digests: RangeDigest[];
  /** Null: all ranges are read. */
  next: DigestCursor | null;
}

/** Searches a shard for names that a subject has, as far as one message gets (M7). */
export interface FindNames extends Envelope {
  subjectType: number;
  subjectId: string;
  /** Where to continue. Null: at the first claim. */
  behind: BucketKey | null;
  /** The most names to answer. */
  limit: number;
}

/** Names whose claims have the subject. Holds are not considered: look the names up. */
export interface FoundNames {
  keys: BucketKey[];
  /** Null: no claim follows. */
  next: BucketKey | null;
}
