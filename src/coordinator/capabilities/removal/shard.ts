import type { Sql } from "../../kernel/ports.ts";
import type { ClaimRow } from "../../kernel/shard/rows.ts";
import type { CellClaimCounts, CellClaimPosition, ClaimCount } from "./messages.ts";

const FIRST_CLAIM: CellClaimPosition = [0, "", 0, ""];

const NEXT_CLAIMS = `FROM claim
    WHERE cell = ? AND (source_type, source_order, bucket_type, canonical) > (?, ?, ?, ?)
    ORDER BY source_type, source_order, bucket_type, canonical`;

/** Both read only the index `claim_by_source`; a test checks the query plan. */
export const countStatement = `SELECT source_type AS sourceType, bucket_type AS type, count(*) AS claims
   FROM (SELECT source_type, bucket_type ${NEXT_CLAIMS} LIMIT ?) GROUP BY source_type, bucket_type`;
export const lastCountedStatement = `SELECT source_type, source_order, bucket_type, canonical ${NEXT_CLAIMS}
  LIMIT 1 OFFSET ?`;

/** Counts the next `rows` claims of a cell, in the order of their sources, and says where to continue. */
export function countClaims(
  sql: Sql,
  cell: string,
  behind: CellClaimPosition | null,
  rows: number,
): CellClaimCounts {
  const bindings = [cell, ...(behind ?? FIRST_CLAIM)];
  const counts = sql.all<ClaimCount>(countStatement, ...bindings, rows);
  const [last] = sql.all<Pick<ClaimRow, "source_type" | "source_order" | "bucket_type" | "canonical">>(
    lastCountedStatement,
    ...bindings,
    rows - 1,
  );
  return {
    counts,
    next: last === undefined ? null : [last.source_type, last.source_order, last.bucket_type, last.canonical],
  };
}
