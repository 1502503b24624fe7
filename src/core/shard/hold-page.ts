import type { HeldOp, HeldRange, HoldPage, ListHolds } from "../messages.ts";
import { countedIn, type RangeHoldRow, type RangeHolds } from "./range-holds.ts";
import type { HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

/** Returns the holds of one cell among the next `limit` holds of all cells. */
export function holdPage(
  store: ShardStore,
  ranges: RangeHolds,
  { cell, after, limit }: ListHolds,
): Pick<HoldPage, "holds" | "ranges" | "next"> {
  const [bucketType, canonical] = after ?? [-1, ""];
  const rows = store.holdsAfter(bucketType, canonical, limit);
  const last = rows.at(-1);
  return {
    holds: rows.filter((row) => row.cell === cell).map(heldOp),
    ranges:
      after === null ? ranges.all().flatMap((range) => (range.cell === cell ? [heldRange(range)] : [])) : [],
    next: rows.length < limit || last === undefined ? null : [last.bucket_type, last.canonical],
  };
}

function heldRange(range: RangeHoldRow): HeldRange {
  const { scope, from_cell: from, lease, incarnation, counter, epoch, cut_at_ms: cutAtMs } = range;
  const held = { from, scope, lease, incarnation, counter, heldEpoch: epoch };
  return { ...held, isCut: cutAtMs !== null, counted: countedIn(range) };
}

function heldOp(row: HoldRow): HeldOp {
  const { kind, bucket_type: type, canonical, lease, incarnation, counter, epoch } = row;
  const moved = row.granted_by === null ? {} : { grantedBy: row.granted_by };
  const held = { kind, type, canonical, lease, incarnation, counter, heldEpoch: epoch, ...moved };
  if (row.subject_type === null || row.source_type === null) return { ...held, value: canonical };
  return {
    ...held,
    value: row.value ?? canonical,
    subject: { type: row.subject_type, id: row.subject_id ?? "" },
    source: { type: row.source_type, id: row.source_id ?? "" },
    ...(row.scope === null ? {} : { scope: row.scope }),
  };
}
