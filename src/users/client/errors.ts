import type { Answer, Refused, Unknown } from "./answer.ts";
import type { Conflict, Problem } from "./api-types.ts";

/**
 * Every `code` that this version of the package throws: the coordinator's codes, the client's and the cell's.
 * `INTERNAL` is not among them: the client throws `UNAVAILABLE` for every answer of 500 and above.
 */
export type KnownErrorCode =
  | Exclude<Problem["code"], "INTERNAL">
  /** An `AbortSignal` ended the call. */
  | "CANCELLED"
  /** `leasehold/cell`: a chunk of a bulk change failed with an error that has no code. */
  | "BULK_FAILED"
  /** `leasehold/cell`: the answer to the local COMMIT is lost. */
  | "UNKNOWN_COMMIT"
  /** `leasehold/cell`: the database rolled back a transaction that it had reported as committed. */
  | "NOT_SAVED"
  /** `leasehold/cell`: the cell's own tables are missing in its database. */
  | "NOT_INSTALLED"
  /** `leasehold/cell/postgres`: the database left out rows of an insert. */
  | "NOT_STORED"
  /** `leasehold/cell/postgres`: `search_path` hides the cell's table of leases. */
  | "WRONG_TABLE"
  /** `leasehold/cell`: the body ended the local transaction, with a statement or by catching a deadlock. */
  | "TRANSACTION_ENDED";

/** The known codes. It also allows other strings, because a newer coordinator may have more codes. */
export type LeaseholdErrorCode = KnownErrorCode | (string & {});

/** The `name` of every error class of the package. */
export type LeaseholdErrorName =
  | "LeaseholdError"
  | "InvalidArgumentError"
  | "UnauthenticatedError"
  | "PermissionDeniedError"
  | "NotFoundError"
  | "AlreadyClaimedError"
  | "ClaimLeasedError"
  | "FailedPreconditionError"
  | "NotOwnerError"
  | "ClaimMismatchError"
  | "StaleEpochError"
  | "LeaseRolledBackError"
  | "LeaseCommittedError"
  | "LeaseIdReusedError"
  | "CellFrozenError"
  | "CellDrainingError"
  | "ReportPrunedError"
  | "ChangesPrunedError"
  | "ResourceExhaustedError"
  | "UnavailableError"
  | "TimeoutError"
  | "CancelledError"
  | "InvalidNameError"
  | "LocalCommitUnknownError"
  | "NotSavedError"
  | "NotInstalledError"
  | "BulkError";

/** Marks the errors of every copy of this package: the registry of symbols is shared, classes are not. */
const BRAND = Symbol.for("leasehold.error");

export interface LeaseholdErrorDetails {
  code: LeaseholdErrorCode;
  reason?: string | undefined;
  status?: number | undefined;
  field?: string | undefined;
  retryable?: boolean;
  retryAfterMs?: number | undefined;
  conflicts?: readonly Conflict[];
  requestId?: string | undefined;
  outcomeKnown?: boolean;
  leaseUuid?: string | undefined;
  cause?: unknown;
}

/**
 * The base of all errors of the package. Its subclasses and `code` tell what went wrong. See
 * `isLeaseholdError`.
 */
export class LeaseholdError extends Error {
  static {
    // Not a declared member: it would make the types of two copies incompatible.
    Object.defineProperty(this.prototype, BRAND, { value: true });
  }

  // A literal, because minifiers rename classes.
  override readonly name: LeaseholdErrorName = "LeaseholdError";
  readonly code: LeaseholdErrorCode;
  /** More detail than `code`, where a caller may act on it, such as `LEASE_COMMITTED`. */
  readonly reason: string | undefined;
  /** The status of the HTTP answer, if there was one. */
  readonly status: number | undefined;
  /** The wrong part of the request, such as `creates[3].bucket.value`. */
  readonly field: string | undefined;
  /** Whether the same call, unchanged, may succeed later. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  /** Every op of the batch that is in the way, not just the first. */
  readonly conflicts: readonly Conflict[];
  /** The id of the request in the coordinator's log. */
  readonly requestId: string | undefined;
  /**
   * True after a read, and when it is certain that the call was not carried out and will not be. After a
   * begin with `outcomeKnown: false`, roll its `leaseUuid` back: that closes the lease in every case (C7).
   */
  readonly outcomeKnown: boolean;
  /** The lease that the call was about. */
  readonly leaseUuid: string | undefined;

  constructor(message: string, details: LeaseholdErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.reason = details.reason;
    this.status = details.status;
    this.field = details.field;
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    this.conflicts = details.conflicts ?? [];
    this.requestId = details.requestId;
    this.outcomeKnown = details.outcomeKnown ?? true;
    this.leaseUuid = details.leaseUuid;
  }
}

/** The request, or an option, is malformed. `field` names the part. */
export class InvalidArgumentError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "InvalidArgumentError";
}

/** There is no key, or it is invalid, expired or revoked. */
export class UnauthenticatedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "UnauthenticatedError";
}

/** The key has the wrong role or cell. */
export class PermissionDeniedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "PermissionDeniedError";
}

/** There is no such lease, record or route. */
export class NotFoundError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "NotFoundError";
}

/** A name to create has an owner. It stays claimed until the owner destroys the claim. */
export class AlreadyClaimedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "AlreadyClaimedError";
}

/** Only other leases are in the way. They end: try again after `retryAfterMs`. */
export class ClaimLeasedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "ClaimLeasedError";
}

/** Something must change before the call can succeed. The subclasses tell what. */
export class FailedPreconditionError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "FailedPreconditionError";
}

/** A name to destroy or replace belongs to another cell. */
export class NotOwnerError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "NotOwnerError";
}

/** A write with a fencing token changed nothing: a later owner or version of the claim has written before. */
export class StaleEpochError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "StaleEpochError";
}

/** A name to destroy or replace has no claim, or a claim with another subject, source or epoch. */
export class ClaimMismatchError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "ClaimMismatchError";
}

/**
 * The lease was rolled back, which is final. If the local rows are saved, this is an alarm: another cell may
 * own their names.
 */
export class LeaseRolledBackError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "LeaseRolledBackError";
}

/** The lease was committed, which is final. */
export class LeaseCommittedError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "LeaseCommittedError";
}

/** The UUID belongs to a lease with another batch. */
export class LeaseIdReusedError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "LeaseIdReusedError";
}

/** An operator froze the cell. It can finish its leases, but cannot begin any. */
export class CellFrozenError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "CellFrozenError";
}

/** An operator drains the cell. It can finish its leases, and only its verification can begin any. */
export class CellDrainingError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "CellDrainingError";
}

/** The shard no longer knows all names that changed since the position. Forget its answers and start anew. */
export class ReportPrunedError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "ReportPrunedError";
}

/**
 * A shard no longer has all changes after the position. Start from an export of the records, and continue
 * from the positions that were the newest before it.
 */
export class ChangesPrunedError extends FailedPreconditionError {
  override readonly name: LeaseholdErrorName = "ChangesPrunedError";
}

/** A limit of the coordinator was reached, or of this client (`reason: "TOO_MANY_BEGINS_HERE"`). */
export class ResourceExhaustedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "ResourceExhaustedError";
}

/**
 * The coordinator was not reached, or failed. Or this client's circuit breaker is open: then `outcomeKnown`
 * is true, because nothing was sent.
 */
export class UnavailableError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "UnavailableError";
}

/** There was no answer within the deadline. */
export class TimeoutError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "TimeoutError";
}

/** An `AbortSignal` ended the call. Its reason is the `cause`. */
export class CancelledError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "CancelledError";
}

type ErrorClass = new (message: string, details: LeaseholdErrorDetails) => LeaseholdError;

const byReason: ReadonlyMap<string | undefined, ErrorClass> = new Map<string, ErrorClass>([
  ["LEASE_ROLLED_BACK", LeaseRolledBackError],
  ["LEASE_COMMITTED", LeaseCommittedError],
  ["LEASE_ID_REUSED", LeaseIdReusedError],
  ["CELL_FROZEN", CellFrozenError],
  ["CELL_DRAINING", CellDrainingError],
  ["REPORT_PRUNED", ReportPrunedError],
  ["CHANGES_PRUNED", ChangesPrunedError],
  ["CELL_EXISTS", LeaseholdError],
]);

const byCode: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["INVALID_ARGUMENT", InvalidArgumentError],
  ["UNAUTHENTICATED", UnauthenticatedError],
  ["PERMISSION_DENIED", PermissionDeniedError],
  ["NOT_FOUND", NotFoundError],
  ["ALREADY_EXISTS", AlreadyClaimedError],
  ["FAILED_PRECONDITION", FailedPreconditionError],
  ["ABORTED", ClaimLeasedError],
  ["RESOURCE_EXHAUSTED", ResourceExhaustedError],
]);

const unknowns = {
  timeout: { code: "DEADLINE_EXCEEDED", make: TimeoutError },
  cancelled: { code: "CANCELLED", make: CancelledError },
  unavailable: { code: "UNAVAILABLE", make: UnavailableError },
} as const;

function classOf({ code, reason, conflicts }: Refused): ErrorClass {
  const special = byReason.get(reason);
  if (special !== undefined) return special;
  if (code === "FAILED_PRECONDITION" && conflicts.length > 0) {
    return conflicts.some(({ kind }) => kind === "not_owner") ? NotOwnerError : ClaimMismatchError;
  }
  return byCode.get(code) ?? LeaseholdError;
}

export function errorOf(answer: Refused | Unknown, leaseUuid?: string): LeaseholdError {
  if (answer.kind === "unknown") {
    const { code, make: Kind } = unknowns[answer.why];
    const { error, why, status, retryAfterMs, requestId, cause, outcomeKnown } = answer;
    return new Kind(error, {
      code,
      status,
      retryAfterMs,
      requestId,
      cause,
      outcomeKnown,
      leaseUuid,
      retryable: why !== "cancelled",
    });
  }
  const Kind = classOf(answer);
  const { detail, code, reason, field, conflicts, retryable, retryAfterMs, requestId, outcomeKnown } = answer;
  const status = answer.status === 0 ? undefined : answer.status;
  return new Kind(detail === "" ? code : detail, {
    code,
    reason,
    status,
    field,
    conflicts,
    retryable,
    retryAfterMs,
    requestId,
    outcomeKnown,
    leaseUuid,
  });
}

/** Returns the value, or throws the failure as an error. */
export function valueOf<T>(answer: Answer<T>, leaseUuid?: string): T {
  if (answer.kind === "ok") return answer.value;
  throw errorOf(answer, leaseUuid);
}

/**
 * Tells whether an error is this package's, also when another copy of the package made it. `instanceof` is
 * false for errors of another copy. After this guard, compare `error.code` or `error.name` instead.
 *
 * @example
 * ```ts
 * import { isLeaseholdError } from "leasehold/client";
 *
 * try {
 *   await cell.transaction((tx) => tx.insert(users, { username: "ada" }));
 * } catch (error) {
 *   if (!isLeaseholdError(error)) throw error;
 *   if (error.name === "AlreadyClaimedError") console.log("the name is taken");
 *   else if (error.retryable) console.log(`try again in ${error.retryAfterMs ?? 1_000} ms`);
 *   else throw error;
 * }
 * ```
 */
export const isLeaseholdError = (error: unknown): error is LeaseholdError =>
  error instanceof Error && BRAND in error;
