import type { BucketKey, Op } from "../messages.ts";
import type { Sql } from "../ports.ts";
import { sourceOrder } from "../source-order.ts";
import { digestWordsOfHold } from "./digest-words.ts";
import type { Claimant, ExecutionId, FoundClaimRow, Holding, HoldRow } from "./rows.ts";

/** The SQL statements on the shard's tables. It makes no decisions. */
export class ShardStore {
  readonly #sql: Sql;
  readonly #onChange: (cell: string) => void;
  #hasChanged = false;

  /** @param onChange is called with the cell of each hold that is made or ends */
  constructor(sql: Sql, onChange: (cell: string) => void = () => {}) {
    this.#sql = sql;
    this.#onChange = onChange;
  }

  /** Returns whether claims or holds were changed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  claim({ type, canonical }: BucketKey): FoundClaimRow | undefined {
    return this.#sql.all<FoundClaimRow>(
      `SELECT claim.*, hold.cell IS NOT NULL AS is_held
         FROM claim LEFT JOIN hold USING (bucket_type, canonical) WHERE bucket_type = ? AND canonical = ?`,
      type,
      canonical,
    )[0];
  }

  hold({ type, canonical }: BucketKey): HoldRow | undefined {
    return this.holdOn(type, canonical);
  }

  holdOn(bucketType: number, canonical: string): HoldRow | undefined {
    return this.#sql.all<HoldRow>(
      "SELECT * FROM hold WHERE bucket_type = ? AND canonical = ?",
      bucketType,
      canonical,
    )[0];
  }

  /**
   * Returns the claim and the hold of a bucket, in one statement: everything that a prepare needs to know.
   */
  occupants({ type, canonical }: BucketKey): { claim: Claimant | undefined; hold: Holding | undefined } {
    const rows = this.#sql.all<(Claimant & { kind: null }) | (Claimant & Holding)>(
      `SELECT NULL AS kind, cell, subject_type, subject_id, source_type, source_id, epoch
         FROM claim WHERE bucket_type = ?1 AND canonical = ?2
       UNION ALL
       SELECT kind, cell, subject_type, subject_id, source_type, source_id, epoch
         FROM hold WHERE bucket_type = ?1 AND canonical = ?2`,
      type,
      canonical,
    );
    return { claim: rows.find(({ kind }) => kind === null), hold: rows.find((row) => row.kind !== null) };
  }

  insertHold(op: Op, holder: ExecutionId, uuid: string, nowMs: number): void {
    const { kind, subject, source } = op;
    this.#hasChanged = true;
    const keep = kind !== "destroy" && subject !== undefined && source !== undefined;
    this.#onChange(holder.cell);
    this.#sql.all(
      `INSERT INTO hold (bucket_type, canonical, kind, cell, lease, incarnation, counter, epoch, held_at_ms,
                         uuid, value, subject_type, subject_id, source_type, source_id, source_order)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      op.type,
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
      keep ? subject.type : null,
      keep ? subject.id : null,
      keep ? source.type : null,
      keep ? source.id : null,
      keep ? sourceOrder(source.id) : null,
    );
  }

  deleteHold({ bucket_type, canonical, cell }: HoldRow): void {
    this.#hasChanged = true;
    this.#onChange(cell);
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

  /** Returns holds in the order of their keys, after the hold with this key. */
  holdsAfter(bucketType: number, canonical: string, limit: number): HoldRow[] {
    return this.#sql.all<HoldRow>(
      "SELECT * FROM hold WHERE (bucket_type, canonical) > (?, ?) ORDER BY bucket_type, canonical LIMIT ?",
      bucketType,
      canonical,
      limit,
    );
  }

  hasHolds(): boolean {
    return this.#sql.all("SELECT 1 FROM hold LIMIT 1").length > 0;
  }
}
