import type { FindNames, FoundNames, RecordPosition } from "./messages.ts";
import type { BucketKey } from "../../kernel/messages.ts";
import type { Sql } from "../../kernel/ports.ts";
import { compareBytes } from "../../../common/source-order.ts";
import { nameOf } from "../../kernel/shard/hold-entries.ts";
import type { HeldEntry, HeldNames } from "../../kernel/shard/held-names.ts";
import { comparePositions } from "./record-order.ts";
import type { ClaimRow, HoldRow } from "../../kernel/shard/rows.ts";
import { claimsOn } from "../../kernel/shard/store.ts";

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

/** The claims of one cell and source type between two positions: after `after`, up to `upTo`. */
export interface ClaimRange {
  cell: string;
  sourceType: number;
  after: RecordPosition;
  upTo: RecordPosition;
}

/**
 * A hold with the source orders that it touches. `next` is where it will put a claim, and `present` is where
 * the claim is that it holds. Null: that one is not in the range.
 */
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

const CLAIMS_BEHIND = `FROM claim WHERE (bucket_type, canonical) > (?, ?) ORDER BY bucket_type, canonical`;

/** Both visit a limited number of rows in the order of the primary key; a test checks the query plan. */
export const findStatement = `SELECT bucket_type AS type, canonical
   FROM (SELECT bucket_type, canonical, subject_type, subject_id ${CLAIMS_BEHIND} LIMIT ?)
  WHERE subject_type = ? AND subject_id = ? LIMIT ?`;
export const lastVisitedStatement = `SELECT bucket_type AS type, canonical ${CLAIMS_BEHIND} LIMIT 1 OFFSET ?`;

type NamesOfSubject = Pick<FindNames, "subjectType" | "subjectId" | "behind" | "limit">;

/**
 * What reads many claims or holds. Each read visits a number of them that its caller bounds (M7): the claims
 * between two positions, where the second one comes from `claimPosition`, or some entries of held names.
 */
export class ScanStore {
  readonly #sql: Sql;
  readonly #held: Pick<HeldNames, "holdsOf">;

  constructor(sql: Sql, held: Pick<HeldNames, "holdsOf">) {
    this.#sql = sql;
    this.#held = held;
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
  claims(range: ClaimRange, types: WantedTypes, limit: number): ClaimRow[] {
    return this.#sql.all<ClaimRow>(
      `SELECT * FROM claim WHERE ${IN_RANGE} AND ${isWanted(types)}
        ORDER BY source_order, bucket_type, canonical LIMIT ?`,
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
   * Returns the first positions that holds among these entries, creates or replaces, will give to claims of a
   * range, for these bucket types.
   */
  arrivals(
    range: ClaimRange,
    types: WantedTypes,
    entries: readonly HeldEntry[],
    limit: number,
  ): RecordPosition[] {
    const arriving = entries
      .flatMap((entry) => this.#held.holdsOf(entry))
      .filter((hold) => isArrivalIn(hold, range))
      .filter(({ bucket_type: type }) => types?.includes(type) ?? true);
    return arriving.map(positionOf).toSorted(comparePositions).slice(0, limit);
  }

  /** Returns those of the holds of these entries that touch source orders in (from, to] (R4). */
  touchingHolds(
    { sourceType, from, to }: { sourceType: number; from: string; to: string },
    types: WantedTypes,
    entries: readonly HeldEntry[],
  ): TouchingHoldRow[] {
    const holds = entries
      .flatMap((entry) => this.#held.holdsOf(entry))
      .filter(({ bucket_type: type }) => types?.includes(type) ?? true);
    const within = (row: Pick<HoldRow, "source_type" | "source_order"> | undefined): string | null => {
      const order = row?.source_type === sourceType ? row.source_order : null;
      return order !== null && compareBytes(order, from) > 0 && compareBytes(order, to) <= 0 ? order : null;
    };
    const claims = claimsOn(
      this.#sql,
      holds.flatMap(({ kind, bucket_type: type, canonical }) =>
        kind === "create" ? [] : [{ type, canonical }],
      ),
    );
    return holds
      .map((hold) => ({ ...hold, next: within(hold), present: within(claims.get(nameOf(hold))) }))
      .filter(({ next, present }) => next !== null || present !== null);
  }

  /** Searches the next `rows` claims for those of a subject, and says where to continue. */
  findNames({ subjectType, subjectId, behind, limit }: NamesOfSubject, rows: number): FoundNames {
    const from = [behind?.type ?? 0, behind?.canonical ?? ""];
    const keys = this.#sql.all<BucketKey>(findStatement, ...from, rows, subjectType, subjectId, limit);
    const lastFound = keys.length === limit ? keys.at(-1) : undefined;
    const [lastVisited] = this.#sql.all<BucketKey>(lastVisitedStatement, ...from, rows - 1);
    return { keys, next: lastFound ?? lastVisited ?? null };
  }
}

type Positioned = Pick<ClaimRow, "source_order" | "bucket_type" | "canonical">;

export const positionOf = (row: Positioned): RecordPosition => [
  row.source_order,
  row.bucket_type,
  row.canonical,
];

/** The hold of a create or replace, which will put a claim at a place in the list of its cell's records. */
export type ArrivingHoldRow = HoldRow & { source_order: string };

/** Whether a hold will put a claim into a range. */
export function isArrivalIn(hold: HoldRow | undefined, range: ClaimRange): hold is ArrivingHoldRow {
  if (hold === undefined || hold.kind === "destroy" || hold.source_order === null) return false;
  if (hold.cell !== range.cell || hold.source_type !== range.sourceType) return false;
  const position: RecordPosition = [hold.source_order, hold.bucket_type, hold.canonical];
  return comparePositions(position, range.after) > 0 && comparePositions(position, range.upTo) <= 0;
}
