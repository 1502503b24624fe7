import type { HoldPosition, RecordPosition } from "../messages.ts";
import type { Sql } from "../ports.ts";
import type { FoundClaimRow, HoldRow } from "./rows.ts";

/** Sorts after every source order: they all begin with 0 or 1. */
export const SOURCE_ORDER_END = "2";

/** Larger than every number of a bucket type. */
const AFTER_ALL_TYPES = 2 ** 31;

/** The position before all records of the source ids after this source order. */
export const afterSource = (order: string): RecordPosition => [order, AFTER_ALL_TYPES, ""];

/** The position before the first record of this source order. */
export const beforeSource = (order: string): RecordPosition => [order, 0, ""];

/** Whether records of the source id of this position may follow it. */
export const isWithinSource = ([, bucketType]: RecordPosition): boolean => bucketType < AFTER_ALL_TYPES;

/** The position before the first hold of a shard. */
export const FIRST_HOLD: HoldPosition = [0, ""];

/** The claims of one cell and source type between two positions: after `after`, up to `upTo`. */
export interface ClaimRange {
  cell: string;
  sourceType: number;
  after: RecordPosition;
  upTo: RecordPosition;
}

/** The holds of a shard between two positions: after `after`, up to `upTo`. */
export interface HoldRange {
  after: HoldPosition;
  upTo: HoldPosition;
}

/** A hold with the source orders that it touches. Null: that one is not in the range. */
export type TouchingHoldRow = HoldRow & { next: string | null; present: string | null };

/** The sums over the claims of a range. */
interface DigestRow {
  /** The number of claims that were visited, of whatever bucket type. */
  visited: number;
  count: number;
  newest: number | null;
  word_0: number;
  word_1: number;
  word_2: number;
  word_3: number;
}

/** Sorts after every hold. */
const AFTER_ALL_HOLDS: HoldPosition = [AFTER_ALL_TYPES, ""];

const IN_RANGE = `cell = ? AND source_type = ?
      AND (source_order, bucket_type, canonical) > (?, ?, ?)
      AND (source_order, bucket_type, canonical) <= (?, ?, ?)`;

const bindingsOf = ({ cell, sourceType, after, upTo }: ClaimRange): (string | number)[] => [
  cell,
  sourceType,
  ...after,
  ...upTo,
];

/** The numbers of the bucket types that a read wants. Null: all. */
export type WantedTypes = readonly number[] | null;

/**
 * Writes the condition on bucket types into a statement. SQLite would read a list in a parameter again for
 * each row.
 */
const isWanted = (types: WantedTypes): string =>
  types === null ? "true" : `+bucket_type IN (${types.map(Math.trunc).join(", ")})`;

/**
 * Reads only the index `claim_by_source`, and at most a given number of its entries; a test checks the query
 * plan. The sum of 32-bit numbers is exact in SQLite's 64-bit integers, and after the modulo also in
 * JavaScript's numbers.
 */
export function digestStatement(types: WantedTypes): string {
  const isAsked = isWanted(types);
  const words = [0, 1, 2, 3].map(
    (word) => `coalesce(sum(digest_${word}) FILTER (WHERE ${isAsked}), 0) % 4294967296 AS word_${word}`,
  );
  return `SELECT count(*) AS visited, count(*) FILTER (WHERE ${isAsked}) AS count,
                 max(updated_at_ms) FILTER (WHERE ${isAsked}) AS newest, ${words.join(", ")}
            FROM (SELECT bucket_type, updated_at_ms, digest_0, digest_1, digest_2, digest_3
                    FROM claim WHERE ${IN_RANGE}
                   ORDER BY source_order, bucket_type, canonical LIMIT ?)`;
}

/** Reads only the index `claim_by_source`. */
export const positionStatement = `SELECT source_order, bucket_type, canonical FROM claim WHERE ${IN_RANGE}
   ORDER BY source_order, bucket_type, canonical LIMIT 1 OFFSET ?`;

/**
 * Counts the next holds and finds the last of them, in one pass. With max(), SQLite takes the other columns
 * from the row with the maximum, which is the last row: the numbers are padded, and texts compare by bytes.
 */
const holdsStatement = `SELECT count(*) AS count, bucket_type, canonical,
         max(printf('%010d', bucket_type) || canonical)
    FROM (SELECT bucket_type, canonical FROM hold WHERE (bucket_type, canonical) > (?, ?)
           ORDER BY bucket_type, canonical LIMIT ?)`;

/**
 * The statements that read many rows. Each of them visits a number of rows that its caller bounds (M7): the
 * claims or holds between two positions, where the second position comes from `claimPosition` or
 * `holdPosition`.
 */
export class ScanStore {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns the position of the claim number `rows` of a range, or undefined if it has fewer claims. */
  claimPosition(range: ClaimRange, rows: number): RecordPosition | undefined {
    const [row] = this.#sql.all<{ source_order: string; bucket_type: number; canonical: string }>(
      positionStatement,
      ...bindingsOf(range),
      rows - 1,
    );
    return row && [row.source_order, row.bucket_type, row.canonical];
  }

  /** Returns up to `limit` claims with these bucket types, in the order of the list. */
  claims(range: ClaimRange, types: WantedTypes, limit: number): FoundClaimRow[] {
    return this.#sql.all<FoundClaimRow>(
      `SELECT claim.*, hold.cell IS NOT NULL AS is_held
         FROM claim LEFT JOIN hold USING (bucket_type, canonical)
        WHERE claim.cell = ? AND claim.source_type = ?
          AND (claim.source_order, bucket_type, canonical) > (?, ?, ?)
          AND (claim.source_order, bucket_type, canonical) <= (?, ?, ?)
          AND ${isWanted(types)}
        ORDER BY claim.source_order, bucket_type, canonical LIMIT ?`,
      ...bindingsOf(range),
      limit,
    );
  }

  /** Adds up the first `rows` claims of a range: those that have one of these bucket types. */
  digest(range: ClaimRange, types: WantedTypes, rows: number): DigestRow {
    const [row] = this.#sql.all<DigestRow>(digestStatement(types), ...bindingsOf(range), rows);
    if (row === undefined) throw new Error("the digest statement returned no row");
    return row;
  }

  /**
   * Returns the range of the next `rows` holds, and how many there are in it. `isLast` is true if no hold
   * follows.
   */
  nextHolds(after: HoldPosition, rows: number): { range: HoldRange; isLast: boolean; count: number } {
    const [read] = this.#sql.all<{ count: number; bucket_type: number; canonical: string }>(
      holdsStatement,
      ...after,
      rows,
    );
    if (read === undefined || read.count < rows)
      return { range: { after, upTo: AFTER_ALL_HOLDS }, isLast: true, count: read?.count ?? 0 };
    return { range: { after, upTo: [read.bucket_type, read.canonical] }, isLast: false, count: rows };
  }

  holds({ after, upTo }: HoldRange): HoldRow[] {
    return this.#sql.all<HoldRow>(
      `SELECT * FROM hold WHERE (bucket_type, canonical) > (?, ?) AND (bucket_type, canonical) <= (?, ?)
        ORDER BY bucket_type, canonical`,
      ...after,
      ...upTo,
    );
  }

  /**
   * Returns the positions that holds of a cell, creates or replaces, will give to claims in its list: those
   * between two positions of the list, of these bucket types, and among these holds.
   */
  arrivals(
    { cell, sourceType, after: from, upTo: to }: ClaimRange,
    types: WantedTypes,
    { after, upTo }: HoldRange,
    limit: number,
  ): RecordPosition[] {
    const rows = this.#sql.all<{ source_order: string; bucket_type: number; canonical: string }>(
      `SELECT source_order, bucket_type, canonical FROM hold
        WHERE (bucket_type, canonical) > (?, ?) AND (bucket_type, canonical) <= (?, ?)
          AND kind <> 'destroy' AND +cell = ? AND +source_type = ?
          AND (+source_order, +bucket_type, +canonical) > (?, ?, ?)
          AND (+source_order, +bucket_type, +canonical) <= (?, ?, ?)
          AND ${isWanted(types)}
        ORDER BY source_order, bucket_type, canonical LIMIT ?`,
      ...after,
      ...upTo,
      cell,
      sourceType,
      ...from,
      ...to,
      limit,
    );
    return rows.map((row) => [row.source_order, row.bucket_type, row.canonical]);
  }

  /**
   * Returns the first `limit` of these holds that touch source orders in (from, to]. `next` is where a hold
   * of the cell will put a claim, and `present` is where the claim is that it holds (R4).
   */
  touchingHolds(
    { cell, sourceType, from, to }: { cell: string; sourceType: number; from: string; to: string },
    types: WantedTypes,
    { after, upTo }: HoldRange,
    limit: number,
  ): TouchingHoldRow[] {
    return this.#sql.all<TouchingHoldRow>(
      `SELECT hold.*, ${orderWithin("hold")} AS next, ${orderWithin("claim")} AS present
         FROM hold LEFT JOIN claim USING (bucket_type, canonical)
        WHERE (bucket_type, canonical) > (?5, ?6) AND (bucket_type, canonical) <= (?7, ?8)
          AND hold.cell = ?1 AND ${isWanted(types)}
          AND (next IS NOT NULL OR present IS NOT NULL)
        ORDER BY bucket_type, canonical LIMIT ?9`,
      cell,
      sourceType,
      from,
      to,
      ...after,
      ...upTo,
      limit,
    );
  }
}

const orderWithin = (table: "hold" | "claim"): string =>
  `iif(${table}.source_type = ?2 AND ${table}.source_order > ?3 AND ${table}.source_order <= ?4,
       ${table}.source_order, NULL)`;
