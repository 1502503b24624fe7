import type { HeldOp, HeldRange, HoldPage, ListHolds } from "./messages.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { FIRST_HOLD } from "../../kernel/shard/held-names.ts";
import { transfersOn } from "../transfer/index.ts";
import { countedIn, type RangeHoldRow } from "../transfer/range-holds.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import type { HoldRow } from "../../kernel/shard/rows.ts";

/** Returns a page of a cell's holds, for a ledger that has lost leases (H7). */
export async function listHolds(part: ShardPart, message: ListHolds): Promise<Result<HoldPage>> {
  const residence = part.residence.current;
  if (!residence.isWhole) return { ok: false, refusal: residence.notHere() };
  const page = holdPage(part, message);
  await part.ports.sql.flush();
  const point = part.instances.point ?? null;
  return ok({ ...page, point, seen: part.log.sightings.current.of(message.cell) ?? null });
}

/** Returns the next holds of one cell, at least `limit` of them if there are as many. */
function holdPage(
  part: ShardPart,
  { cell, after, limit }: ListHolds,
): Pick<HoldPage, "holds" | "ranges" | "next"> {
  const { held } = part.log;
  const { entries, next } = held.after(after ?? FIRST_HOLD, limit, cell);
  return {
    holds: entries.flatMap((entry) => held.holdsOf(entry).map(heldOp)),
    ranges:
      after === null
        ? transfersOn(part)
            .ranges.all()
            .flatMap((range) => (range.cell === cell ? [heldRange(range)] : []))
        : [],
    next,
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
