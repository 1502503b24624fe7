import type { Limits } from "../../../common/limits.ts";
import type { BucketKey, OpKind } from "../../kernel/messages.ts";
import type { Period } from "./messages.ts";
import { readMeta, writeMeta } from "../../kernel/meta.ts";
import type { Sql } from "../../kernel/ports.ts";
import { ManyRows } from "../../kernel/shard/many-rows.ts";
import type { KeptCursor, MovingClaims } from "../../kernel/shard/hooks.ts";
import type { ClaimRow, HoldRow } from "../../kernel/shard/rows.ts";

/**
 * The claims that have ended, in segments of some time each. A segment is dropped as a whole, so the rows
 * need no index by time, and each of them costs one row.
 */
export const PAST_CLAIM_TABLES = [
  // `row_count` is written when the next segment begins. It also counts rows that were erased since.
  `CREATE TABLE IF NOT EXISTS past_segment (
     segment INTEGER NOT NULL PRIMARY KEY,
     from_ms INTEGER NOT NULL,
     row_count INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS past_claim (
     segment INTEGER NOT NULL,
     bucket_type INTEGER NOT NULL,
     canonical TEXT NOT NULL,
     epoch INTEGER NOT NULL,
     value TEXT NOT NULL,
     cell TEXT NOT NULL,
     subject_type INTEGER NOT NULL,
     subject_id TEXT NOT NULL,
     source_type INTEGER NOT NULL,
     source_id TEXT NOT NULL,
     scope TEXT,
     from_ms INTEGER NOT NULL,
     until_ms INTEGER NOT NULL,
     ended_by TEXT NOT NULL,
     ended_kind TEXT NOT NULL CHECK (ended_kind IN ('destroy', 'replace', 'move')),
     PRIMARY KEY (segment, bucket_type, canonical, epoch)
   ) STRICT, WITHOUT ROWID`,
];

/** A segment is this part of `nameHistoryS` long, and has this part of `nameHistoryRows`. */
const SEGMENTS = 64;

interface Segment {
  segment: number;
  fromMs: number;
  rows: number;
}

/** What has ended a claim. `move`: a transfer has given it to another cell. */
type EndedKind = Exclude<OpKind, "create"> | "move";

export interface PastClaimRow extends Pick<
  ClaimRow,
  | "bucket_type"
  | "canonical"
  | "value"
  | "cell"
  | "subject_type"
  | "subject_id"
  | "source_type"
  | "source_id"
  | "scope"
  | "epoch"
> {
  from_ms: number;
  until_ms: number;
  ended_by: string;
  ended_kind: EndedKind;
}

const END_CLAIMS = new ManyRows(
  6,
  (ended) => `WITH ended (type, name, segment, at_ms, by_lease, by_kind) AS (VALUES ${ended})
    INSERT INTO past_claim (segment, bucket_type, canonical, epoch, value, cell, subject_type, subject_id,
                            source_type, source_id, scope, from_ms, until_ms, ended_by, ended_kind)
    SELECT ended.segment, claim.bucket_type, claim.canonical, claim.epoch, claim.value, claim.cell,
           claim.subject_type, claim.subject_id, claim.source_type, claim.source_id, claim.scope,
           claim.updated_at_ms, max(at_ms, claim.updated_at_ms), by_lease, by_kind
      FROM ended CROSS JOIN claim ON claim.bucket_type = type AND claim.canonical = name`,
);

/**
 * The latest past claims of a name. SQLite visits the segments and their rows in this order, so it reads no
 * more rows than segments and results. A test checks the query plan.
 */
export const pastClaimsStatement = (columns: string): string =>
  `SELECT ${columns} FROM past_claim
    WHERE segment IN (SELECT segment FROM past_segment) AND bucket_type = ? AND canonical = ? AND epoch < ?
    ORDER BY segment DESC, epoch DESC LIMIT ?`;

/** Keeps the claims that have ended, for a limited time and in a limited number of rows (K1, K3). */
export class PastClaims {
  readonly #sql: Sql;
  readonly #retentionMs: number;
  readonly #segmentMs: number;
  readonly #isFull: () => boolean;
  readonly #mostRows: number;
  readonly #segmentRows: number;
  /** Oldest first. The count of the newest one is not in its row yet. */
  readonly #segments: Segment[];
  #isNewestCounted = false;
  #completeSinceMs: number | null;
  #hasChanged = false;

  /** @param isFull whether the shard has no room for more names */
  constructor(sql: Sql, { nameHistoryS, nameHistoryRows }: Limits, isFull: () => boolean) {
    this.#sql = sql;
    this.#isFull = isFull;
    this.#retentionMs = nameHistoryS * 1_000;
    this.#segmentMs = Math.ceil(this.#retentionMs / SEGMENTS);
    this.#mostRows = nameHistoryRows;
    this.#segmentRows = Math.ceil(nameHistoryRows / SEGMENTS);
    this.#segments = sql.all<Segment>(
      'SELECT segment, from_ms AS fromMs, row_count AS "rows" FROM past_segment ORDER BY segment',
    );
    const stored = readMeta(sql, "past_complete_since_ms");
    this.#completeSinceMs = typeof stored === "number" ? stored : null;
  }

  /** Every claim that ended after this time is here, unless it was erased. Null: all that ever ended. */
  get completeSinceMs(): number | null {
    return this.#completeSinceMs;
  }

  /** Returns whether rows were added or removed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  /**
   * Keeps the claims that committed destroys and replaces are about to end. Must be called in the transaction
   * that ends them, before it does.
   */
  keep(holds: readonly HoldRow[], nowMs: number): void {
    if (holds.length === 0) return;
    const segment = this.#segmentAt(nowMs);
    END_CLAIMS.all(
      this.#sql,
      holds.map(({ bucket_type, canonical, lease, kind }) => [
        bucket_type,
        canonical,
        segment.segment,
        nowMs,
        lease,
        kind,
      ]),
    );
    segment.rows += holds.length;
    this.#hasChanged = true;
  }

  /**
   * Keeps claims that are about to get another cell. Must be called in the transaction that does it, before
   * it does.
   */
  keepMoved({ where, values, lease, atMs }: MovingClaims, nowMs: number): void {
    const segment = this.#segmentAt(nowMs);
    const kept = this.#sql.all(
      `INSERT INTO past_claim (segment, bucket_type, canonical, epoch, value, cell, subject_type, subject_id,
                               source_type, source_id, scope, from_ms, until_ms, ended_by, ended_kind)
       SELECT ?, bucket_type, canonical, epoch, value, cell, subject_type, subject_id,
              source_type, source_id, scope, updated_at_ms, max(?, updated_at_ms), ?, 'move'
         FROM claim WHERE ${where}
       RETURNING 1`,
      segment.segment,
      atMs,
      lease,
      ...values,
    ).length;
    segment.rows += kept;
    this.#hasChanged = true;
  }

  /** Returns the segment of what ends now. */
  #segmentAt(nowMs: number): Segment {
    const newest = this.#segments.at(-1);
    if (newest === undefined) return this.#begin(nowMs);
    this.#countNewest(newest);
    const isFull = newest.rows >= this.#segmentRows;
    return isFull || this.#isOver(newest, nowMs) ? this.#begin(nowMs) : newest;
  }

  /** A segment from the future has no age, because the clock was set back. So it is over (M4). */
  #isOver({ fromMs }: Segment, nowMs: number): boolean {
    return Math.abs(nowMs - fromMs) >= this.#segmentMs;
  }

  /** A new instance counts the rows of the newest segment, of which there is a limited number. */
  #countNewest(newest: Segment): void {
    if (this.#isNewestCounted) return;
    const sql = "SELECT count(*) AS n FROM past_claim WHERE segment = ?";
    newest.rows = this.#sql.all<{ n: number }>(sql, newest.segment)[0]?.n ?? 0;
    this.#isNewestCounted = true;
  }

  #begin(nowMs: number): Segment {
    const newest = this.#segments.at(-1);
    if (newest !== undefined) {
      this.#countNewest(newest);
      const sql = "UPDATE past_segment SET row_count = ? WHERE segment = ?";
      this.#sql.all(sql, newest.rows, newest.segment);
    }
    const begun: Segment = { segment: (newest?.segment ?? 0) + 1, fromMs: nowMs, rows: 0 };
    const sql = "INSERT INTO past_segment (segment, from_ms, row_count) VALUES (?, ?, 0)";
    this.#sql.all(sql, begun.segment, begun.fromMs);
    this.#segments.push(begun);
    this.#isNewestCounted = true;
    this.#hasChanged = true;
    return begun;
  }

  /** Returns up to `limit` past claims of a name with an epoch below `before`, the latest first. */
  list({ type, canonical }: BucketKey, before: number, limit: number): Period[] {
    return this.#sql
      .all<PastClaimRow>(pastClaimsStatement("past_claim.*"), type, canonical, before, limit)
      .map(periodOfPastClaim);
  }

  /** Erases up to `most` past claims of a name. Returns how many, and whether more are left. */
  erase({ type, canonical }: BucketKey, most: number): { erased: number; hasMore: boolean } {
    const found = this.count({ type, canonical }, most + 1);
    const erased = Math.min(found, most);
    if (erased > 0) {
      this.#sql.all(
        `DELETE FROM past_claim WHERE (segment, bucket_type, canonical, epoch) IN
           (${pastClaimsStatement("segment, bucket_type, canonical, epoch")})`,
        type,
        canonical,
        Number.MAX_SAFE_INTEGER,
        erased,
      );
      this.#hasChanged = true;
    }
    return { erased, hasMore: found > most };
  }

  /** Returns the number of past claims of a name, or `most` if there are more. */
  count({ type, canonical }: BucketKey, most: number): number {
    const sql = pastClaimsStatement("epoch");
    return this.#sql.all(sql, type, canonical, Number.MAX_SAFE_INTEGER, most).length;
  }

  /** Returns when the next rows are to be dropped: never if it is infinite. */
  dueMs(nowMs: number): number {
    const [oldest, next] = this.#segments;
    const newest = this.#segments.at(-1);
    if (oldest === undefined || newest === undefined) return Infinity;
    if (newest.fromMs - nowMs > this.#segmentMs || this.#isTooMuch || this.#isFull()) return nowMs;
    return this.#endOf(oldest, next) + this.#retentionMs;
  }

  /** The newest segment is dropped only for its age, or if names need its room. */
  get #isTooMuch(): boolean {
    return (
      this.#segments.length > 1 && this.#segments.reduce((sum, { rows }) => sum + rows, 0) > this.#mostRows
    );
  }

  #endOf({ fromMs }: Segment, next: Segment | undefined): number {
    return Math.min(fromMs + this.#segmentMs, next?.fromMs ?? Infinity);
  }

  /** Drops up to `most` rows of the oldest segment, if it is due. */
  drop(nowMs: number, most: number): void {
    const newest = this.#segments.at(-1);
    if (newest !== undefined && newest.fromMs - nowMs > this.#segmentMs) this.#begin(nowMs);
    const [oldest, next] = this.#segments;
    if (oldest === undefined || this.dueMs(nowMs) > nowMs) return;
    this.incompleteBefore(Math.min(this.#endOf(oldest, next), nowMs));
    const dropped = this.#sql.all(
      `DELETE FROM past_claim WHERE (segment, bucket_type, canonical, epoch) IN
         (SELECT segment, bucket_type, canonical, epoch FROM past_claim WHERE segment = ? LIMIT ?)
       RETURNING 1`,
      oldest.segment,
      most,
    ).length;
    if (dropped < most) {
      this.#sql.all("DELETE FROM past_segment WHERE segment = ?", oldest.segment);
      this.#segments.shift();
    }
    this.#hasChanged = true;
  }

  /** Deletes past claims of names that have moved, among the next `limit` ones. Null: there are no more. */
  deleteMoved(behind: KeptCursor, limit: number, hasMoved: (key: BucketKey) => boolean): KeptCursor | null {
    const rows = this.#sql.all<BucketKey & { segment: number; epoch: number }>(
      `SELECT segment, bucket_type AS type, canonical, epoch FROM past_claim
        WHERE (segment, bucket_type, canonical, epoch) > (?, ?, ?, ?)
        ORDER BY segment, bucket_type, canonical, epoch LIMIT ?`,
      ...behind,
      limit,
    );
    for (const { segment, type, canonical, epoch } of rows)
      if (hasMoved({ type, canonical }))
        this.#sql.all(
          `DELETE FROM past_claim
            WHERE segment = ? AND bucket_type = ? AND canonical = ? AND epoch = ?`,
          segment,
          type,
          canonical,
          epoch,
        );
    const last = rows.length === limit ? rows.at(-1) : undefined;
    return last === undefined ? null : [last.segment, last.type, last.canonical, last.epoch];
  }

  /** Claims that ended before this time may be missing from now on. */
  incompleteBefore(atMs: number): void {
    if (this.#completeSinceMs !== null && this.#completeSinceMs >= atMs) return;
    this.#completeSinceMs = atMs;
    writeMeta(this.#sql, "past_complete_since_ms", atMs);
    this.#hasChanged = true;
  }
}

function periodOfPastClaim(row: PastClaimRow): Period {
  return {
    ...common(row),
    fromMs: row.from_ms,
    untilMs: row.until_ms,
    endedBy: { lease: row.ended_by, kind: row.ended_kind },
  };
}

/** The period of a claim that has not ended. */
export const periodOfClaim = (claim: ClaimRow): Period => ({
  ...common(claim),
  fromMs: claim.updated_at_ms,
  untilMs: null,
  endedBy: null,
});

const common = (
  row: Pick<
    ClaimRow,
    "value" | "cell" | "subject_type" | "subject_id" | "source_type" | "source_id" | "scope" | "epoch"
  >,
): Omit<Period, "fromMs" | "untilMs" | "endedBy"> => ({
  value: row.value,
  cell: row.cell,
  subject: { type: row.subject_type, id: row.subject_id },
  source: { type: row.source_type, id: row.source_id },
  scope: row.scope,
  epoch: row.epoch,
});
