import { canonicalize } from "../../../common/canonical/canonicalize.ts";
import type { CanonicalRule } from "../../../common/canonical/rule.ts";
import { digestWordsOf } from "../../../common/digest.ts";
import { limitTable } from "../../../common/limits.ts";
import type { ScrubKind } from "./messages.ts";
import { shardOf } from "../../kernel/placement.ts";
import { sourceOrder } from "../../../common/source-order.ts";
import type { RangeHoldRow } from "../transfer/range-holds.ts";
import type { ClaimRow, HoldRow } from "../../kernel/shard/rows.ts";

/** What a shard's rows are compared with (Z2). */
export interface RowContext {
  shard: number;
  shards: number;
  /** The largest position that the shard has assigned. */
  position: number;
  /** By the numbers of bucket types. */
  rules: ReadonlyMap<number, CanonicalRule>;
}

/** A hold, with what it needs to know of the claim of its name. */
export type CheckedHold = HoldRow & { claim_cell: string | null; claim_epoch: number | null };

/** A past claim, with the epoch of the claim that the name has now. */
export type CheckedPastClaim = Pick<ClaimRow, "bucket_type" | "canonical" | "value" | "cell" | "epoch"> & {
  segment: number;
  ended_by: string;
  claim_epoch: number | null;
};

type Named = Pick<ClaimRow, "bucket_type" | "canonical" | "epoch"> & { value: string | null };

/** Returns what is wrong with a claim. */
export function faultsOfClaim(claim: ClaimRow, context: RowContext): ScrubKind[] {
  const words = digestWordsOf({
    type: claim.bucket_type,
    canonical: claim.canonical,
    value: claim.value,
    subject: { type: claim.subject_type, id: claim.subject_id },
    source: { type: claim.source_type, id: claim.source_id },
    scope: claim.scope,
  });
  const stored = [claim.digest_0, claim.digest_1, claim.digest_2, claim.digest_3];
  return [
    ...faultsOfName(claim, context),
    ...(words.every((word, index) => word === stored[index]) ? [] : (["wrong_digest"] as const)),
    ...(claim.source_order === sourceOrder(claim.source_id) ? [] : (["wrong_source_order"] as const)),
  ];
}

/** Returns what is wrong with a hold. Its epoch is above that of the claim that it ends (E1). */
export function faultsOfHold(hold: CheckedHold, context: RowContext): ScrubKind[] {
  const faults = faultsOfName(hold, context, hold.claim_epoch ?? 0);
  const columns = [
    hold.uuid,
    hold.value,
    hold.subject_type,
    hold.subject_id,
    hold.source_type,
    hold.source_id,
  ];
  const isComplete = hold.kind === "destroy" || !columns.includes(null);
  const fitsClaim = hold.kind === "create" ? hold.claim_cell === null : hold.claim_cell === hold.cell;
  if (!isComplete || !fitsClaim) faults.push("unfit_hold");
  return faults;
}

/** Returns what is wrong with a range hold. */
export const faultsOfRangeHold = ({ epoch }: RangeHoldRow, { position }: RowContext): ScrubKind[] =>
  epoch > position ? ["wrong_epoch"] : [];

/** Returns what is wrong with a past claim. Later claims of its name have larger epochs (E1). */
export function faultsOfPastClaim(past: CheckedPastClaim, context: RowContext): ScrubKind[] {
  const faults = faultsOfName(past, context);
  const isLater = past.claim_epoch !== null && past.epoch >= past.claim_epoch;
  return isLater && !faults.includes("wrong_epoch") ? ["wrong_epoch", ...faults] : faults;
}

function faultsOfName(
  { bucket_type: type, canonical, value, epoch }: Named,
  { shard, shards, position, rules }: RowContext,
  earlierEpoch = 0,
): ScrubKind[] {
  const rule = rules.get(type);
  return [
    ...(epoch > position || epoch <= earlierEpoch ? (["wrong_epoch"] as const) : []),
    ...(shardOf(type, canonical, shards) === shard ? [] : (["wrong_shard"] as const)),
    ...(rule === undefined || value === null || isCanonical(rule, value, canonical)
      ? []
      : (["wrong_canonical_form"] as const)),
  ];
}

/** The limit may have been larger when the name was claimed. */
function isCanonical(rule: CanonicalRule, value: string, canonical: string): boolean {
  const made = canonicalize(rule, value, limitTable.valueBytes.max);
  return made.ok && made.canonical === canonical;
}
