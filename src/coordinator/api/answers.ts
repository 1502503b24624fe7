import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import type { Cell } from "../kernel/directory/messages.ts";
import type { MintedKey } from "../capabilities/keys/messages.ts";
import type { CellStatus, ClaimRecord, Lease, Op, OpKind } from "../kernel/messages.ts";
import type { Period } from "../capabilities/past-claims/messages.ts";
import { idleMsOf } from "../kernel/ledger/idle-time.ts";
import type { ReportedStatus, RunTimes } from "../capabilities/status/status.ts";
import { Types, type TypeKind } from "../../common/types/types.ts";
import type { period as periodSchema } from "../capabilities/past-claims/edge/routes.ts";
import type * as schemas from "./contract/schemas.ts";
import type { StoredType } from "../capabilities/types/edge/types-copy.ts";

// These functions translate the core's types into the API's answers.

type ApiLease = z.input<typeof schemas.lease>;
type ApiRecord = z.input<typeof schemas.wholeRecord>;

export const timeOf = (ms: number): string => new Date(ms).toISOString();

/** Returns the types of the rows in an answer. The functions below need all of them. */
export const storedTypes = (rows: readonly Pick<Op, "type" | "subject" | "source">[]): StoredType[] =>
  rows.flatMap(({ type, subject, source }) => [
    { kind: "bucket" as const, number: type },
    ...(subject === undefined ? [] : [{ kind: "subject" as const, number: subject.type }]),
    ...(source === undefined ? [] : [{ kind: "source" as const, number: source.type }]),
  ]);

/** For leases in lists, which have no ops. */
export const NO_TYPES = new Types([]);

function nameOf(types: Types, kind: TypeKind, number: number): string {
  const entry = types.numbered(kind, number);
  if (entry === undefined) throw new Error(`the ${kind} type ${number} was not checked before its use`);
  return entry.name;
}

export const named = <T extends { type: number }>(types: Types, kind: TypeKind, { type, ...rest }: T) => ({
  type: nameOf(types, kind, type),
  ...rest,
});

export function toApiLease(
  types: Types,
  {
    lease,
    cell,
    state,
    createdAtMs,
    ageMs,
    counts,
    decidedAtMs,
    decidedBy,
    decidedByKey,
    reason,
    renewedAtMs,
    renewalReason,
    ops,
  }: Lease,
): ApiLease {
  const renewed = renewedAtMs === undefined ? {} : { renewedAtMs };
  return {
    uuid: lease,
    cell_id: cell,
    state,
    created_at: timeOf(createdAtMs),
    age_ms: ageMs,
    ...(state === "GRANTED" ? { idle_ms: idleMsOf({ createdAtMs, ageMs, ...renewed }) } : {}),
    ...(renewedAtMs === undefined ? {} : { renewed_at: timeOf(renewedAtMs) }),
    ...(renewalReason === undefined ? {} : { renewal_reason: renewalReason }),
    ...(decidedAtMs === undefined ? {} : { decided_at: timeOf(decidedAtMs) }),
    ...(decidedBy === undefined ? {} : { decided_by: decidedBy === "operator" ? "operator" : "cell" }),
    ...(decidedByKey === undefined ? {} : { decided_by_key: decidedByKey }),
    ...(reason === undefined ? {} : { reason }),
    counts,
    ...(ops === undefined
      ? {}
      : {
          creates: claimOps(types, ops, "create"),
          destroys: destroyOps(types, ops),
          replaces: claimOps(types, ops, "replace"),
        }),
  };
}

function claimOps(types: Types, ops: readonly Op[], kind: OpKind): NonNullable<ApiLease["replaces"]> {
  return ops.flatMap(({ kind: its, type, value, subject, source, scope, epoch }) =>
    its === kind && subject !== undefined && source !== undefined
      ? [
          {
            bucket: named(types, "bucket", { type, value }),
            subject: named(types, "subject", subject),
            source: named(types, "source", source),
            ...scopeOf(scope),
            ...epochOf(epoch),
          },
        ]
      : [],
  );
}

function destroyOps(types: Types, ops: readonly Op[]): NonNullable<ApiLease["destroys"]> {
  return ops.flatMap(({ kind, type, value, subject, source, epoch }) =>
    kind === "destroy"
      ? [
          {
            bucket: named(types, "bucket", { type, value }),
            subject: subject && named(types, "subject", subject),
            source: source && named(types, "source", source),
            ...epochOf(epoch),
          },
        ]
      : [],
  );
}

export const scopeOf = (scope: string | null | undefined): { scope?: string } =>
  scope === null || scope === undefined ? {} : { scope };

const epochOf = (epoch: number | undefined): { epoch?: number } => (epoch === undefined ? {} : { epoch });

export function toApiRecord(types: Types, record: ClaimRecord): ApiRecord {
  const { uuid, type, value, subject, source, scope, cell, epoch, status, lease, transferTo } = record;
  return {
    uuid,
    bucket: named(types, "bucket", { type, value }),
    subject: named(types, "subject", subject),
    source: named(types, "source", source),
    ...scopeOf(scope),
    cell_id: cell,
    epoch,
    status,
    lease_uuid: lease,
    ...(transferTo === undefined ? {} : { transfer_id: `${transferTo}-${lease}` }),
    created_at: timeOf(record.createdAtMs),
    updated_at: timeOf(record.updatedAtMs),
  };
}

/** Of another cell's record, a cell gets only the foreign record. */
export function toApiRecordFor(
  types: Types,
  { role, cell }: Principal,
  record: ClaimRecord,
): ApiRecord | z.input<typeof schemas.foreignRecord> {
  if (role !== "cell" || cell === record.cell) return toApiRecord(types, record);
  return {
    bucket: named(types, "bucket", { type: record.type, value: record.value }),
    cell_id: record.cell,
    status: record.status,
  };
}

export const toApiPeriod = (
  types: Types,
  { value, cell, subject, source, scope, epoch, fromMs, untilMs, endedBy }: Period,
): z.input<typeof periodSchema> => ({
  cell_id: cell,
  value,
  subject: named(types, "subject", subject),
  source: named(types, "source", source),
  ...scopeOf(scope),
  epoch,
  from: timeOf(fromMs),
  until: untilMs === null ? null : timeOf(untilMs),
  ended_by: endedBy && { lease_uuid: endedBy.lease, kind: endedBy.kind },
});

/** `status` is undefined if the cell's ledger could not be reached. */
export function toApiCell(
  { cell, name, address, locationHint, createdAtMs, updatedAtMs, removedAtMs }: Cell,
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
    removed_at: removedAtMs === null ? null : timeOf(removedAtMs),
    status: status?.reported == null ? null : toApiStatus(cell, status.reported),
    created_at: timeOf(createdAtMs),
    // The directory has the name and the address; the ledger has the state.
    updated_at: timeOf(Math.max(updatedAtMs, status?.stateSetAtMs ?? 0)),
  };
}

export function toApiStatus(
  cell: string,
  { reportedAtMs, nowMs, sdk, reconciliation, verification }: ReportedStatus,
): z.input<typeof schemas.cellStatus> {
  const agoMs = (atMs: number): number => Math.max(0, nowMs - atMs);
  const timesOf = ({ startedAtMs, endedAtMs, lastDoneAtMs }: RunTimes) => ({
    started_at: startedAtMs === undefined ? undefined : timeOf(startedAtMs),
    ended_at: timeOf(endedAtMs),
    ended_ago_ms: agoMs(endedAtMs),
    last_done_at: lastDoneAtMs === undefined ? undefined : timeOf(lastDoneAtMs),
  });
  return {
    cell_id: cell,
    reported_at: timeOf(reportedAtMs),
    age_ms: agoMs(reportedAtMs),
    sdk,
    reconciliation: reconciliation && {
      outcome: reconciliation.outcome,
      is_full: reconciliation.isFull,
      ...timesOf(reconciliation),
      counts: reconciliation.counts,
      stale_leases: reconciliation.staleLeases,
      unreleased_deletions: reconciliation.unreleasedDeletions,
    },
    verification: verification && {
      status: verification.status,
      is_applied: verification.isApplied,
      ...timesOf(verification),
      counts: verification.counts,
      approval_reason: verification.approvalReason,
    },
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
