import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import type { Cell, MintedKey } from "../core/directory/messages.ts";
import type { CellStatus, ClaimRecord, Lease, Op, OpKind } from "../core/messages.ts";
import type * as schemas from "./contract/schemas.ts";

// These functions translate the core's types into the API's answers.

type ApiLease = z.input<typeof schemas.lease>;
type ApiRecord = z.input<typeof schemas.wholeRecord>;

export const timeOf = (ms: number): string => new Date(ms).toISOString();

export function toApiLease({
  lease,
  cell,
  state,
  createdAtMs,
  ageMs,
  counts,
  decidedAtMs,
  decidedBy,
  reason,
  ops,
}: Lease): ApiLease {
  return {
    uuid: lease,
    cell_id: cell,
    state,
    created_at: timeOf(createdAtMs),
    age_ms: ageMs,
    ...(decidedAtMs === undefined ? {} : { decided_at: timeOf(decidedAtMs) }),
    ...(decidedBy === undefined ? {} : { decided_by: decidedBy === "operator" ? "operator" : "cell" }),
    ...(reason === undefined ? {} : { reason }),
    counts,
    ...(ops === undefined
      ? {}
      : { creates: claimOps(ops, "create"), destroys: destroyOps(ops), replaces: claimOps(ops, "replace") }),
  };
}

function claimOps(ops: readonly Op[], kind: OpKind): NonNullable<ApiLease["replaces"]> {
  return ops.flatMap(({ kind: its, type, value, subject, source, epoch }) =>
    its === kind && subject !== undefined && source !== undefined
      ? [{ bucket: { type, value }, subject, source, ...epochOf(epoch) }]
      : [],
  );
}

function destroyOps(ops: readonly Op[]): NonNullable<ApiLease["destroys"]> {
  return ops.flatMap(({ kind, type, value, subject, source, epoch }) =>
    kind === "destroy" ? [{ bucket: { type, value }, subject, source, ...epochOf(epoch) }] : [],
  );
}

const epochOf = (epoch: number | undefined): { epoch?: number } => (epoch === undefined ? {} : { epoch });

export function toApiRecord(record: ClaimRecord): ApiRecord {
  const { uuid, type, value, subject, source, cell, epoch, status, lease, createdAtMs, updatedAtMs } = record;
  return {
    uuid,
    bucket: { type, value },
    subject,
    source,
    cell_id: cell,
    epoch,
    status,
    lease_uuid: lease,
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
  };
}

/** Of another cell's record, a cell gets only the foreign record. */
export function toApiRecordFor(
  { role, cell }: Principal,
  record: ClaimRecord,
): ApiRecord | z.input<typeof schemas.foreignRecord> {
  if (role !== "cell" || cell === record.cell) return toApiRecord(record);
  return { bucket: { type: record.type, value: record.value }, cell_id: record.cell, status: record.status };
}

/** `status` is undefined if the cell's ledger could not be reached. */
export function toApiCell(
  { cell, name, address, locationHint, createdAtMs, updatedAtMs }: Cell,
  status: CellStatus | undefined,
): z.input<typeof schemas.cell> {
  return {
    cell_id: cell,
    name,
    address,
    location_hint: locationHint,
    state: status?.state ?? null,
    outstanding_leases: status?.outstandingLeases ?? null,
    unapplied_decisions: status?.unappliedDecisions ?? null,
    stored_bytes: status?.storedBytes ?? null,
    created_at: timeOf(createdAtMs),
    // The directory has the name and the address; the ledger has the state.
    updated_at: timeOf(Math.max(updatedAtMs, status?.stateSetAtMs ?? 0)),
  };
}

export function toApiKey({
  keyId,
  role,
  cell,
  createdAtMs,
  expiresAtMs,
  note,
  revokedAtMs,
}: MintedKey): z.input<typeof schemas.key> {
  return {
    id: keyId,
    role,
    cell_id: cell,
    created_at: timeOf(createdAtMs),
    expires_at: timeOf(expiresAtMs),
    note,
    revoked_at: revokedAtMs === null ? null : timeOf(revokedAtMs),
  };
}
