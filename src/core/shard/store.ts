import type { BucketKey, Op } from "../messages.ts";
import type { Sql } from "../ports.ts";
import { bucketTypes, sourceTypes, subjectTypes } from "../registry.ts";
import { sourceOrder } from "../source-order.ts";
import { digestWordsOfHold } from "./digest-words.ts";
import type { Claimant, CreateHoldRow, HeldClaimRow, ExecutionId, HoldRow } from "./rows.ts";

/** The sums over the claims of a range. `digested` is the number of claims that have a digest. */
interface DigestRow {
  count: number;
  digested: number;
  newest: number | null;
  word_0: number;
  word_1: number;
  word_2: number;
  word_3: number;
}

/** Sorts after every source order: they all begin with 0 or 1. */
export const SOURCE_ORDER_END = "2";

const WORD_SUMS = [0, 1, 2, 3]
  .map((word) => `coalesce(sum(digest_${word}), 0) % 4294967296 AS word_${word}`)
  .join(", ");

/**
 * Reads only the index `claim_by_source`; a test checks the query plan. `types` are numbers of the registry.
 * They are written into the statement, because SQLite would read a list in a parameter again for every range.
 * The `+` prevents SQLite from choosing the primary key because of them.
 */
export const digestStatement = (types: readonly number[]): string =>
  `SELECT count(*) AS count, count(digest_0) AS digested, max(updated_at_ms) AS newest, ${WORD_SUMS}
     FROM claim
    WHERE cell = ? AND source_type = ? AND source_order > ? AND source_order <= ?
      AND +bucket_type IN (${types.join(", ")})`;

const orderWithin = (table: "hold" | "claim"): string =>
  `iif(${table}.source_type = ?2 AND ${table}.source_order > ?3 AND ${table}.source_order <= ?4,
       ${table}.source_order, NULL)`;

/** The SQL statements on the shard's tables. It makes no decisions. */
export class ShardStore {
  readonly #sql: Sql;
  #hasChanged = false;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns whether claims or holds were changed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  /** Returns a claim, with the kind and lease of its hold. */
  claim({ type, canonical }: BucketKey): HeldClaimRow | undefined {
    return this.#sql.all<HeldClaimRow>(
      `SELECT claim.*, hold.kind AS hold_kind, hold.lease AS hold_lease
         FROM claim LEFT JOIN hold USING (bucket_type, canonical) WHERE bucket_type = ? AND canonical = ?`,
      bucketTypes[type].number,
      canonical,
    )[0];
  }

  hold({ type, canonical }: BucketKey): HoldRow | undefined {
    return this.#sql.all<HoldRow>(
      "SELECT * FROM hold WHERE bucket_type = ? AND canonical = ?",
      bucketTypes[type].number,
      canonical,
    )[0];
  }

  /**
   * Returns the claim and the hold of a bucket, in one statement: everything that a prepare needs to know.
   */
  occupants({ type, canonical }: BucketKey): { claim: Claimant | undefined; hold: Claimant | undefined } {
    const rows = this.#sql.all<Claimant & { is_hold: 0 | 1 }>(
      `SELECT 0 AS is_hold, cell, subject_type, subject_id, source_type, source_id, epoch
         FROM claim WHERE bucket_type = ?1 AND canonical = ?2
       UNION ALL
       SELECT 1, cell, subject_type, subject_id, source_type, source_id, epoch
         FROM hold WHERE bucket_type = ?1 AND canonical = ?2`,
      bucketTypes[type].number,
      canonical,
    );
    return {
      claim: rows.find(({ is_hold }) => is_hold === 0),
      hold: rows.find(({ is_hold }) => is_hold === 1),
    };
  }

  insertHold(op: Op, holder: ExecutionId, uuid: string, nowMs: number): void {
    const { kind, subject, source } = op;
    this.#hasChanged = true;
    const keep = kind !== "destroy" && subject !== undefined && source !== undefined;
    this.#sql.all(
      `INSERT INTO hold (bucket_type, canonical, kind, cell, lease, incarnation, counter, epoch, held_at_ms,
                         uuid, value, subject_type, subject_id, source_type, source_id, source_order)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      bucketTypes[op.type].number,
      op.canonical,
      kind,
      holder.cell,
      holder.lease,
      holder.incarnation,
      holder.counter,
      holder.epoch,
      nowMs,
      keep ? uuid : null,
      keep ? op.value : null,
      keep ? subjectTypes[subject.type].number : null,
      keep ? subject.id : null,
      keep ? sourceTypes[source.type].number : null,
      keep ? source.id : null,
      keep ? sourceOrder(source.id) : null,
    );
  }

  deleteHold({ bucket_type, canonical }: HoldRow): void {
    this.#hasChanged = true;
    this.#sql.all("DELETE FROM hold WHERE bucket_type = ? AND canonical = ?", bucket_type, canonical);
  }

  /**
   * Carries out a committed hold. The prepare has checked that a create has no claim, and that a destroy or
   * replace has one.
   */
  apply(hold: HoldRow, nowMs: number): void {
    const { bucket_type, canonical } = hold;
    if (hold.kind === "create") {
      this.#sql.all(
        `INSERT INTO claim (bucket_type, canonical, value, uuid, cell, subject_type, subject_id, source_type,
                            source_id, source_order, epoch, created_at_ms, updated_at_ms,
                            digest_0, digest_1, digest_2, digest_3)
         SELECT bucket_type, canonical, value, uuid, cell, subject_type, subject_id, source_type,
                source_id, source_order, epoch, held_at_ms, ?, ?, ?, ?, ?
           FROM hold WHERE bucket_type = ? AND canonical = ?`,
        nowMs,
        ...digestWordsOfHold(hold),
        bucket_type,
        canonical,
      );
    } else if (hold.kind === "destroy") {
      this.#sql.all("DELETE FROM claim WHERE bucket_type = ? AND canonical = ?", bucket_type, canonical);
    } else {
      this.#sql.all(
        `UPDATE claim SET (value, subject_type, subject_id, source_type, source_id, source_order, epoch,
                           updated_at_ms, digest_0, digest_1, digest_2, digest_3)
                        = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
          WHERE bucket_type = ? AND canonical = ?`,
        hold.value,
        hold.subject_type,
        hold.subject_id,
        hold.source_type,
        hold.source_id,
        hold.source_order,
        hold.epoch,
        nowMs,
        ...digestWordsOfHold(hold),
        bucket_type,
        canonical,
      );
    }
  }

  /**
   * Returns all holds with these epochs, which identify executions. It scans all current holds, so it is for
   * recovery only.
   */
  holdsOf(epochs: readonly number[]): HoldRow[] {
    return this.#sql.all<HoldRow>(
      "SELECT * FROM hold WHERE epoch IN (SELECT value FROM json_each(?))",
      JSON.stringify(epochs),
    );
  }

  /** Returns the executions that have holds on this shard, oldest first. */
  executions(limit: number): (ExecutionId & { heldAtMs: number })[] {
    return this.#sql.all<ExecutionId & { heldAtMs: number }>(
      `SELECT cell, lease, incarnation, counter, epoch, min(held_at_ms) AS heldAtMs
         FROM hold GROUP BY cell, lease, incarnation, counter, epoch ORDER BY epoch LIMIT ?`,
      limit,
    );
  }

  hasHolds(): boolean {
    return this.#sql.all("SELECT 1 FROM hold LIMIT 1").length > 0;
  }

  /**
   * Returns the claims of a cell and source type in source order, from after `after` up to and including
   * `upTo`. `typesJson` is a JSON array of bucket type numbers.
   */
  claimsBySource(
    cell: string,
    sourceType: number,
    typesJson: string,
    after: string,
    upTo: string,
    limit: number,
  ): HeldClaimRow[] {
    return this.#sql.all<HeldClaimRow>(
      `SELECT claim.*, hold.kind AS hold_kind, hold.lease AS hold_lease
         FROM claim LEFT JOIN hold USING (bucket_type, canonical)
        WHERE claim.cell = ? AND claim.source_type = ? AND claim.source_order > ? AND claim.source_order <= ?
          AND bucket_type IN (SELECT value FROM json_each(?))
        ORDER BY claim.source_order, bucket_type, canonical LIMIT ?`,
      cell,
      sourceType,
      after,
      upTo,
      typesJson,
      limit,
    );
  }

  /**
   * Returns the create holds of a cell and source type in the same order. It scans all current holds, which
   * have no index.
   */
  createHoldsBySource(
    cell: string,
    sourceType: number,
    typesJson: string,
    after: string,
    upTo: string,
    limit: number,
  ): CreateHoldRow[] {
    return this.#sql.all<CreateHoldRow>(
      `SELECT * FROM hold
        WHERE kind = 'create' AND cell = ? AND source_type = ? AND source_order > ? AND source_order <= ?
          AND bucket_type IN (SELECT value FROM json_each(?))
        ORDER BY source_order, bucket_type, canonical LIMIT ?`,
      cell,
      sourceType,
      after,
      upTo,
      typesJson,
      limit,
    );
  }

  /**
   * Adds up the claims of a cell in (after, upTo], from the index alone. Sums of 32-bit numbers are exact in
   * SQLite's 64-bit integers, and after the modulo also in JavaScript's numbers.
   */
  digestBySource(
    cell: string,
    sourceType: number,
    types: readonly number[],
    after: string,
    upTo: string,
  ): DigestRow {
    const [row] = this.#sql.all<DigestRow>(digestStatement(types), cell, sourceType, after, upTo);
    if (row === undefined) throw new Error("the digest statement returned no row");
    return row;
  }

  /**
   * Returns the source orders in (after, upTo] that holds of the cell touch: where a hold will put a claim,
   * and where a hold is on an existing claim (R4). Reads at most `limit` such holds. It scans all current
   * holds, each with its claim.
   */
  heldSources(
    cell: string,
    sourceType: number,
    types: readonly number[],
    after: string,
    upTo: string,
    limit: number,
  ): string[] {
    const rows = this.#sql.all<{ next: string | null; present: string | null }>(
      `SELECT ${orderWithin("hold")} AS next, ${orderWithin("claim")} AS present
         FROM hold LEFT JOIN claim USING (bucket_type, canonical)
        WHERE hold.cell = ?1 AND +bucket_type IN (${types.join(", ")})
          AND (next IS NOT NULL OR present IS NOT NULL) LIMIT ?5`,
      cell,
      sourceType,
      after,
      upTo,
      limit,
    );
    return rows.flatMap(({ next, present }) => [next, present]).filter((order) => order !== null);
  }
}
