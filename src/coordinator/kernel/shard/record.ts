import type { ClaimRecord } from "../messages.ts";
import type { ClaimRow, HoldRow } from "./rows.ts";

/**
 * Returns the record of a claim. `hold`: the hold of a granted lease that destroys or replaces it. During a
 * replace the record shows the old values, with status ACTIVE and the id of the lease.
 */
export function recordOfClaim(claim: ClaimRow, hold?: HoldRow): ClaimRecord {
  return {
    ...common(claim),
    epoch: claim.epoch,
    status: hold?.kind === "destroy" ? "LEASE_DESTROYING" : "ACTIVE",
    lease: hold?.lease ?? null,
    createdAtMs: claim.created_at_ms,
    updatedAtMs: claim.updated_at_ms,
  };
}

/** Returns the record of a create hold whose lease is granted. */
export function recordOfHold(hold: HoldRow): ClaimRecord {
  const { held_at_ms: createdAtMs, epoch, lease } = hold;
  return { ...common(hold), epoch, status: "LEASE_CREATING", lease, createdAtMs, updatedAtMs: createdAtMs };
}

function common(
  row: ClaimRow | HoldRow,
): Pick<ClaimRecord, "type" | "canonical" | "uuid" | "value" | "subject" | "source" | "scope" | "cell"> {
  return {
    type: row.bucket_type,
    canonical: row.canonical,
    uuid: notNull(row.uuid),
    value: notNull(row.value),
    subject: { type: notNull(row.subject_type), id: notNull(row.subject_id) },
    source: { type: notNull(row.source_type), id: notNull(row.source_id) },
    scope: row.scope,
    cell: row.cell,
  };
}

export function notNull<T>(value: T | null): T {
  if (value === null) throw new Error("a stored claim or hold has NULL in a column that must have a value");
  return value;
}
