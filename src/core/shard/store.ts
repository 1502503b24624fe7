import type { BucketKey, Op } from "../messages.ts";
import { readMetaNumber, writeMeta } from "../meta.ts";
import type { Sql } from "../ports.ts";
import { bucketTypes, sourceTypes, subjectTypes } from "../registry.ts";
import { sourceOrder } from "../source-order.ts";
import { digestWordsOfHold } from "./digest-words.ts";
import type { Claimant, CreateHoldRow, HeldClaimRow, ExecutionId, HoldRow } from "./rows.ts";

/** What the claims of a range add up to. `digested`: how many of them have a digest. */
interface DigestRow {
  count: number;
  digested: number;
  newest: number | null;
  word_0: number;
  word_1: number;
  word_2: number;
  word_3: number;
}

/** Behind every source order: they begin with 0 or 1. */
export const SOURCE_ORDER_END = "2";

const WORD_SUMS = [0, 1, 2, 3]
  .map((word) => `coalesce(sum(digest_${word}), 0) % 4294967296 AS word_${word}`)
  .join(", ");

/**
 * Reads `claim_by_source` and nothing else: its plan is tested. `types` are numbers of the registry, written out because a list in a parameter is
 * read again for every range; the `+` keeps them from choosing the table's own key.
 */
export const digestStatement = (types: readonly number[]): string =>
  `SELECT count(*) AS count, count(digest_0) AS digested, max(updated_at_ms) AS newest, ${WORD_SUMS}
     FROM claim WHERE cell = ? AND source_type = ? AND source_order > ? AND source_order <= ? AND +bucket_type IN (${types.join(", ")})`;

const orderWithin = (table: "hold" | "claim"): string =>
  `iif(${table}.source_type = ?2 AND ${table}.source_order > ?3 AND ${table}.source_order <= ?4, ${table}.source_order, NULL)`;

/** Epochs that are reserved at a time. */
const EPOCH_BLOCK = 1_000;

/** The shard's tables, statement by statement. Decides nothing. */
export class ShardStore {
  readonly #sql: Sql;
  #epoch: number;
  /** On disk: none up to here will be given again by a later instance. */
  #reservedEpoch: number;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#epoch = readMetaNumber(sql, "epoch");
    this.#reservedEpoch = this.#epoch;
  }

  /** With what is held of it. */
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

  /** Who has a bucket, in one statement: all that a prepare needs to know. */
  occupants({ type, canonical }: BucketKey): { claim: Claimant | undefined; hold: Claimant | undefined } {
    const rows = this.#sql.all<Claimant & { is_hold: 0 | 1 }>(
      `SELECT 0 AS is_hold, cell, subject_type, subject_id, source_type, source_id, epoch FROM claim WHERE bucket_type = ?1 AND canonical = ?2
       UNION ALL
       SELECT 1, cell, subject_type, subject_id, source_type, source_id, epoch FROM hold WHERE bucket_type = ?1 AND canonical = ?2`,
      bucketTypes[type].number,
      canonical,
    );
    return {
      claim: rows.find(({ is_hold }) => is_hold === 0),
      hold: rows.find(({ is_hold }) => is_hold === 1),
    };
  }

  /** Raises the counter of grants and returns it: every later owner of a bucket has a larger epoch. To be reserved by the same transaction. */
  raiseEpoch(): number {
    this.#epoch += 1;
    return this.#epoch;
  }

  /** At the end of each transaction. One row for many grants: a restart leaves out what is left of the last block, and nothing needs it. */
  reserveEpochs(): void {
    if (this.#epoch <= this.#reservedEpoch) return;
    this.#reservedEpoch = this.#epoch + EPOCH_BLOCK;
    writeMeta(this.#sql, "epoch", this.#reservedEpoch);
  }

  insertHold(op: Op, holder: ExecutionId, uuid: string, nowMs: number): void {
    const { kind, subject, source } = op;
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
    this.#sql.all("DELETE FROM hold WHERE bucket_type = ? AND canonical = ?", bucket_type, canonical);
  }

  /** Turns a hold into what it was for. The claim of a create cannot exist, and that of the others must: both are checked at prepare. */
  apply(hold: HoldRow, nowMs: number): void {
    const { bucket_type, canonical } = hold;
    if (hold.kind === "create") {
      this.#sql.all(
        `INSERT INTO claim (bucket_type, canonical, value, uuid, cell, subject_type, subject_id, source_type, source_id, source_order, epoch, created_at_ms, updated_at_ms,
                            digest_0, digest_1, digest_2, digest_3)
         SELECT bucket_type, canonical, value, uuid, cell, subject_type, subject_id, source_type, source_id, source_order, epoch, held_at_ms, ?, ?, ?, ?, ?
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
        `UPDATE claim SET (value, subject_type, subject_id, source_type, source_id, source_order, epoch, updated_at_ms,
                           digest_0, digest_1, digest_2, digest_3) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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

  /** All holds with these epochs, which name executions. One scan of the holds in flight: for recovery only. */
  holdsOf(epochs: readonly number[]): HoldRow[] {
    return this.#sql.all<HoldRow>(
      "SELECT * FROM hold WHERE epoch IN (SELECT value FROM json_each(?))",
      JSON.stringify(epochs),
    );
  }

  /** The executions that hold something here, oldest first. */
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

  /** Claims of a cell by source, in source order, from after `after` up to and including `upTo`. `typesJson`: bucket type numbers. */
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

  /** Create holds of a cell by source, in the same order. A scan of the holds in flight, which have no index. */
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
        WHERE kind = 'create' AND cell = ? AND source_type = ? AND source_order > ? AND source_order <= ? AND bucket_type IN (SELECT value FROM json_each(?))
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
   * The claims of a cell in (after, upTo], added up from the index alone. Sums of 32-bit numbers are exact in SQLite's 64 bits, and after the
   * modulo in JavaScript's numbers too.
   */
  digestBySource(
    cell: string,
    sourceType: number,
    types: readonly number[],
    after: string,
    upTo: string,
  ): DigestRow {
    const [row] = this.#sql.all<DigestRow>(digestStatement(types), cell, sourceType, after, upTo);
    if (row === undefined) throw new Error("a sum without a row");
    return row;
  }

  /**
   * The source orders in (after, upTo] at which a hold of the cell will put a claim, or stands on one: of up to `limit` holds. A scan of the holds in
   * flight, each with its claim.
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
        WHERE hold.cell = ?1 AND +bucket_type IN (${types.join(", ")}) AND (next IS NOT NULL OR present IS NOT NULL) LIMIT ?5`,
      cell,
      sourceType,
      after,
      upTo,
      limit,
    );
    return rows.flatMap(({ next, present }) => [next, present]).filter((order) => order !== null);
  }
}
