import type { ClaimRecord, LookupFound } from "../messages.ts";
import type { AskedHold, ClaimRow, HoldRow } from "./rows.ts";

/** What a key shows. `ask`: its hold must be asked about. `without` is what it shows without the hold. */
export type Read<Hold extends AskedHold = HoldRow> =
  | LookupFound
  | { kind: "ask"; hold: Hold; without: LookupFound };

/** What a lookup has read of a key, and whether the key had a hold that may change what it shows (Q2). */
export interface KeyRead {
  read: Read<AskedHold>;
  isHeld: boolean;
}

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
