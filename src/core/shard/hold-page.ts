import type { HeldOp, HoldPage, ListHolds } from "../messages.ts";
import { bucketTypeByNumber, sourceTypeByNumber, subjectTypeByNumber } from "../registry.ts";
import type { HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

/** Returns the holds of one cell among the next `limit` holds of all cells. */
export function holdPage(
  store: ShardStore,
  { cell, after, limit }: ListHolds,
): Pick<HoldPage, "holds" | "next"> {
  const [bucketType, canonical] = after ?? [-1, ""];
  const rows = store.holdsAfter(bucketType, canonical, limit);
  const last = rows.at(-1);
  return {
    holds: rows.filter((row) => row.cell === cell).map(heldOp),
    next: rows.length < limit || last === undefined ? null : [last.bucket_type, last.canonical],
  };
}

function heldOp(row: HoldRow): HeldOp {
  const type = bucketTypeByNumber(row.bucket_type);
  if (type === undefined) throw unknownNumber("bucket", row.bucket_type);
  const { kind, canonical, lease, incarnation, counter, epoch } = row;
  const held = { kind, type, canonical, lease, incarnation, counter, heldEpoch: epoch };
  if (row.subject_type === null || row.source_type === null) return { ...held, value: canonical };
  const subjectType = subjectTypeByNumber(row.subject_type);
  const sourceType = sourceTypeByNumber(row.source_type);
  if (subjectType === undefined) throw unknownNumber("subject", row.subject_type);
  if (sourceType === undefined) throw unknownNumber("source", row.source_type);
  return {
    ...held,
    value: row.value ?? canonical,
    subject: { type: subjectType, id: row.subject_id ?? "" },
    source: { type: sourceType, id: row.source_id ?? "" },
  };
}

const unknownNumber = (what: string, number: number): Error =>
  new Error(`a hold has the ${what} type ${number}, which this version does not know`);
