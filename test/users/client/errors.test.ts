import { describe, expect, it } from "vitest";
import * as errors from "../../../src/users/client/errors.ts";
import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseholdErrorDetails,
} from "../../../src/users/client/errors.ts";
import {
  errorCodes,
  type ConflictKind,
  type ErrorCode,
  type Reason,
} from "../../../src/coordinator/kernel/refusal.ts";
import { errorOf, fakeClient, problem, UUID, type Reply } from "./fake.ts";

type ErrorClass = new (message: string, details: LeaseholdErrorDetails) => LeaseholdError;

const refusedWith = async (reply: Reply): Promise<LeaseholdError> => {
  const { client } = fakeClient([reply], { retries: 0 });
  return errorOf(client.leases.begin({}, { uuid: UUID }));
};

const classes: Record<ErrorCode, ErrorClass> = {
  INVALID_ARGUMENT: errors.InvalidArgumentError,
  UNAUTHENTICATED: errors.UnauthenticatedError,
  PERMISSION_DENIED: errors.PermissionDeniedError,
  NOT_FOUND: errors.NotFoundError,
  ALREADY_EXISTS: errors.AlreadyClaimedError,
  FAILED_PRECONDITION: errors.FailedPreconditionError,
  ABORTED: errors.ClaimLeasedError,
  RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
  INTERNAL: errors.UnavailableError,
  UNAVAILABLE: errors.UnavailableError,
  DEADLINE_EXCEEDED: errors.TimeoutError,
};

it.each(Object.entries(classes))("%s has an error class", async (code, Expected) => {
  const { status } = errorCodes[code as ErrorCode];
  const error = await refusedWith(problem(status, code));
  expect(error.constructor).toBe(Expected);
  expect(error.name).toBe(Expected.name);
  expect(error.status).toBe(status);
  expect(error.outcomeKnown).toBe(status < 500);
});

const reasons: Record<Reason, readonly [ErrorCode, ErrorClass]> = {
  LEASE_ID_REUSED: ["FAILED_PRECONDITION", errors.LeaseIdReusedError],
  LEASE_ROLLED_BACK: ["FAILED_PRECONDITION", errors.LeaseRolledBackError],
  LEASE_COMMITTED: ["FAILED_PRECONDITION", errors.LeaseCommittedError],
  CELL_FROZEN: ["FAILED_PRECONDITION", errors.CellFrozenError],
  CELL_DRAINING: ["FAILED_PRECONDITION", errors.CellDrainingError],
  CELL_NOT_DRAINING: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  CELL_HAS_LEASES: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  CELL_REMOVING: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  CELL_NOT_REMOVING: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  CELL_REMOVED: ["PERMISSION_DENIED", errors.PermissionDeniedError],
  EXPORT_DIFFERS: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  CELL_UNKNOWN: ["NOT_FOUND", errors.NotFoundError],
  ROUTE_UNKNOWN: ["NOT_FOUND", errors.NotFoundError],
  // A conflict about a cell, not about a name.
  CELL_EXISTS: ["ALREADY_EXISTS", LeaseholdError],
  CONCURRENT_CHANGE: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  KEY_REVOKED: ["UNAUTHENTICATED", errors.UnauthenticatedError],
  KEY_EXPIRED: ["UNAUTHENTICATED", errors.UnauthenticatedError],
  TOO_MANY_BEGINS: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  TOO_MANY_LEASES: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  TOO_MANY_FENCES: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  LEDGER_FULL: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  SHARD_FULL: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  SHARD_HOLDS_FULL: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  NO_VERIFICATION_SLOT: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  BODY_TOO_LARGE: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  TOO_MANY_READS: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  BODY_TOO_SLOW: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  LEASE_TOO_LARGE: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  HISTORY_LOST: ["UNAVAILABLE", errors.UnavailableError],
  NO_CELLS: ["UNAVAILABLE", errors.UnavailableError],
  OPERATION_RUNNING: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  GROWTH_UNKNOWN: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  GROWTH_CUT: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  GROWTH_NOT_COPIED: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  GROWTH_SHARD_UNAVAILABLE: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  PLACEMENT_MISMATCH: ["UNAVAILABLE", errors.UnavailableError],
  FORMAT_UNKNOWN: ["UNAVAILABLE", errors.UnavailableError],
  UPGRADE_BLOCKED: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  UPGRADE_UNFINISHED: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  UNKNOWN_TABLES: ["UNAVAILABLE", errors.UnavailableError],
  AUDIT_FULL: ["UNAVAILABLE", errors.UnavailableError],
  TYPE_IN_USE: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  TYPES_CHANGED: ["UNAVAILABLE", errors.UnavailableError],
  STATUS_TOO_EARLY: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  TRANSFER_BLOCKED: ["ABORTED", errors.ClaimLeasedError],
  TRANSFER_TOO_LARGE: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  TRANSFER_NOT_READY: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  TRANSFER_CUT: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  TRANSFER_ABORTED: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  TOO_MANY_TRANSFERS: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
  SCOPE_EMPTY: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  SCOPE_CHANGED: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  SWITCH_BACK_OVER: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  LEASE_OF_TRANSFER: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  REPORT_PRUNED: ["FAILED_PRECONDITION", errors.ReportPrunedError],
  CHANGES_PRUNED: ["FAILED_PRECONDITION", errors.ChangesPrunedError],
  TOO_MANY_STREAMS: ["RESOURCE_EXHAUSTED", errors.ResourceExhaustedError],
};

it.each(Object.entries(reasons))(
  "%s has its own error class, or the class of its code",
  async (reason, [code, Expected]) => {
    const error = await refusedWith(problem(errorCodes[code].status, code, { reason }));
    expect(error.constructor).toBe(Expected);
    expect(error).toBeInstanceOf(LeaseholdError);
    if (errorCodes[code].status < 500) expect(error).toMatchObject({ code, reason });
  },
);

describe("conflicts", () => {
  const kinds: Record<ConflictKind, readonly [ErrorCode, ErrorClass]> = {
    leased: ["ABORTED", errors.ClaimLeasedError],
    taken: ["ALREADY_EXISTS", errors.AlreadyClaimedError],
    not_owner: ["FAILED_PRECONDITION", errors.NotOwnerError],
    absent: ["FAILED_PRECONDITION", errors.ClaimMismatchError],
    mismatch: ["FAILED_PRECONDITION", errors.ClaimMismatchError],
  };
  const conflict = (kind: string) => ({
    list: "destroys",
    index: 0,
    bucket: { type: "ROUTES", value: "a" },
    kind,
  });

  it.each(Object.entries(kinds))("of the kind %s", async (kind, [code, Expected]) => {
    const error = await refusedWith(problem(409, code, { conflicts: [conflict(kind)] }));
    expect(error.constructor).toBe(Expected);
    expect(error.conflicts).toEqual([conflict(kind)]);
  });

  it("of several kinds: not_owner takes precedence", async () => {
    const conflicts = ["absent", "leased", "not_owner"].map(conflict);
    expect(await refusedWith(problem(409, "FAILED_PRECONDITION", { conflicts }))).toBeInstanceOf(
      errors.NotOwnerError,
    );
  });
});

it.each(["NEVER_HEARD_OF", "constructor", "toString", "__proto__"])(
  "treats an unknown code or reason as a refusal: %s",
  async (name) => {
    expect((await refusedWith(problem(409, name))).constructor).toBe(LeaseholdError);
    const error = await refusedWith(problem(409, "ABORTED", { reason: name }));
    expect(error.constructor).toBe(errors.ClaimLeasedError);
    expect(error).toMatchObject({ code: "ABORTED", reason: name, outcomeKnown: true });
  },
);

describe("isLeaseholdError", () => {
  it("is true for errors of the package only", async () => {
    const error = await refusedWith(problem(409, "ABORTED"));
    expect(isLeaseholdError(error)).toBe(true);
    expect(isLeaseholdError(Object.assign(new Error("a copy of the fields"), { ...error }))).toBe(false);
    expect(isLeaseholdError(new Error("no"))).toBe(false);
    expect(isLeaseholdError({ ...error })).toBe(false);
    expect(isLeaseholdError(undefined)).toBe(false);
  });
});
