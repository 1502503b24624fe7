import { DigestSum } from "../../../common/digest.ts";
import type { BucketKey } from "../../kernel/messages.ts";
import type { Sql } from "../../kernel/ports.ts";
import type { TransferPlan } from "./messages.ts";
import type { DigestedClaims } from "./range.ts";
import type { RangeHoldRow } from "./range-holds.ts";
import type { HeldNames } from "../../kernel/shard/held-names.ts";
import { bucketText, CHANGED_COLUMNS, type ChangedClaimRow, type HoldRow } from "../../kernel/shard/rows.ts";

const OF_SCOPE = "claim INDEXED BY claim_by_scope WHERE cell = ? AND scope = ?";

/** The condition of the first claims of a cell that have a scope. */
export const FIRST_OF_SCOPE = `(bucket_type, canonical) IN (SELECT bucket_type, canonical FROM ${OF_SCOPE}
  ORDER BY bucket_type, canonical LIMIT ?)`;

const NEXT_OF_SCOPE = `FROM ${OF_SCOPE} AND (bucket_type, canonical) > (?, ?)
  ORDER BY bucket_type, canonical`;

/** All of them read only claims of one scope; a test checks the query plans. */
export const scopeStatements = {
  count: `SELECT count(*) AS n FROM (SELECT 1 FROM ${OF_SCOPE} LIMIT ?)`,
  countEpoch: `SELECT count(*) AS n FROM ${OF_SCOPE} AND epoch = ?`,
  digest: `SELECT count(*) AS count, ${[0, 1, 2, 3]
    .map((word) => `coalesce(sum(digest_${word}), 0) % 4294967296 AS word_${word}`)
    .join(", ")} FROM ${OF_SCOPE}`,
  keys: `SELECT bucket_type AS type, canonical FROM ${OF_SCOPE}`,
  plan: `SELECT source_type AS sourceType, bucket_type AS type, count(*) AS claims
    FROM (SELECT source_type, bucket_type ${NEXT_OF_SCOPE} LIMIT ?) GROUP BY source_type, bucket_type`,
  lastPlanned: `SELECT bucket_type AS type, canonical ${NEXT_OF_SCOPE} LIMIT 1 OFFSET ?`,
} as const;

interface DigestRow {
  count: number;
  word_0: number;
  word_1: number;
  word_2: number;
  word_3: number;
}

/** The SQL statements on all claims of a cell that have one scope. It makes no decisions. */
export class ScopeStore {
  readonly #sql: Sql;
  readonly #held: Pick<HeldNames, "on" | "arrivingIn" | "holdsOf">;

  constructor(sql: Sql, held: Pick<HeldNames, "on" | "arrivingIn" | "holdsOf">) {
    this.#sql = sql;
    this.#held = held;
  }

  /** Returns the number of claims, or `most` if there are more. */
  count(cell: string, scope: string, most: number): number {
    return this.#sql.all<{ n: number }>(scopeStatements.count, cell, scope, most)[0]?.n ?? 0;
  }

  countEpoch(cell: string, scope: string, epoch: number): number {
    return this.#sql.all<{ n: number }>(scopeStatements.countEpoch, cell, scope, epoch)[0]?.n ?? 0;
  }

  digest(cell: string, scope: string): DigestedClaims {
    const [row] = this.#sql.all<DigestRow>(scopeStatements.digest, cell, scope);
    if (row === undefined) throw new Error("the digest statement returned no row");
    const sum = new DigestSum();
    sum.add([row.word_0, row.word_1, row.word_2, row.word_3], row.count);
    return { count: row.count, hash: sum.hash };
  }

  keys(cell: string, scope: string): BucketKey[] {
    return this.#sql.all<BucketKey>(scopeStatements.keys, cell, scope);
  }

  /** Returns some leases of a cell that hold a claim of the scope, or will put one there. */
  leases(cell: string, scope: string, limit: number): string[] {
    const leases = new Set<string>();
    for (const hold of this.#holdsIn(cell, scope)) {
      leases.add(hold.lease);
      if (leases.size === limit) break;
    }
    return [...leases];
  }

  /** Returns some holds on claims of the scope, or that will put claims there. */
  holds(cell: string, scope: string, limit: number): HoldRow[] {
    const holds: HoldRow[] = [];
    for (const hold of this.#holdsIn(cell, scope)) {
      if (holds.length === limit) break;
      holds.push(hold);
    }
    return holds;
  }

  *#holdsIn(cell: string, scope: string): Iterable<HoldRow> {
    for (const entry of this.#held.arrivingIn(cell, scope))
      yield* this.#held.holdsOf(entry).filter((hold) => hold.scope === scope);
    for (const { type, canonical } of this.keys(cell, scope)) {
      const hold = this.#held.on(bucketText(type, canonical));
      if (hold !== undefined) yield hold;
    }
  }

  /** Counts the next `rows` claims by their types, and says where to continue. */
  plan(
    { from, scope }: { from: string; scope: string },
    behind: BucketKey | null,
    rows: number,
  ): Pick<TransferPlan, "counts" | "next"> {
    const bindings = [from, scope, behind?.type ?? 0, behind?.canonical ?? ""];
    const counts = this.#sql.all<TransferPlan["counts"][number]>(scopeStatements.plan, ...bindings, rows);
    const [last] = this.#sql.all<BucketKey>(scopeStatements.lastPlanned, ...bindings, rows - 1);
    return { counts, next: last ?? null };
  }

  /**
   * Gives the first claims of a transfer's source to its destination (Y5). Their past claims must be kept
   * before, in the same transaction.
   */
  move({ from_cell, scope, cell, epoch, cut_at_ms }: RangeHoldRow, limit: number): ChangedClaimRow[] {
    return this.#sql.all<ChangedClaimRow>(
      `UPDATE claim SET (cell, epoch, updated_at_ms) = (?, ?, max(?, updated_at_ms))
        WHERE ${FIRST_OF_SCOPE} RETURNING ${CHANGED_COLUMNS}`,
      cell,
      epoch,
      cut_at_ms,
      from_cell,
      scope,
      limit,
    );
  }
}
