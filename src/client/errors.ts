import type { Answer, Refused, Unknown } from "./answer.ts";
import type { Conflict, Problem } from "./api-types.ts";

/** The coordinator's codes, and the one that only a client knows. Open-ended: a newer coordinator may have more. */
export type LeaseholdErrorCode = Problem["code"] | "CANCELLED" | (string & {});

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

/** Everything that can go wrong with a call. `instanceof` one of its subclasses, or `code`, tells what. */
export class LeaseholdError extends Error {
  readonly code: LeaseholdErrorCode;
  /** Finer than the code, where a caller may act on it, such as `LEASE_COMMITTED`. */
  readonly reason: string | undefined;
  /** Of the HTTP answer, if there was one. */
  readonly status: number | undefined;
  /** What is wrong in the request, such as `creates[3].bucket.value`. */
  readonly field: string | undefined;
  /** Whether the same call may succeed later, unchanged. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  /** Every op of a batch that stands in the way, not just the first. */
  readonly conflicts: readonly Conflict[];
  /** Finds the request in the coordinator's log. */
  readonly requestId: string | undefined;
  /**
   * Whether it is certain that the call was not carried out, and will not be. After a begin with `outcomeKnown: false` roll its `leaseUuid` back:
   * that closes it, whatever became of it (rule C7).
   */
  readonly outcomeKnown: boolean;
  /** Of the lease that the call was about. */
  readonly leaseUuid: string | undefined;

  constructor(message: string, details: LeaseholdErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
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

/** A request, or an option, that is not well-formed. `field` names the part. */
export class InvalidArgumentError extends LeaseholdError {}
/** No key, or one that is not valid, has expired or was revoked. */
export class UnauthenticatedError extends LeaseholdError {}
/** The key's role or cell does not fit. */
export class PermissionDeniedError extends LeaseholdError {}
/** No such lease, record or route. */
export class NotFoundError extends LeaseholdError {}
/** A name to be taken has an owner. It stays taken until that owner gives it up. */
export class AlreadyClaimedError extends LeaseholdError {}
/** All that stands in the way are other leases. They pass: try again after `retryAfterMs`. */
export class ClaimLeasedError extends LeaseholdError {}
/** Something must change before this can succeed; its subclasses tell what. */
export class FailedPreconditionError extends LeaseholdError {}
/** A name to be given up or replaced belongs to another cell. */
export class NotOwnerError extends FailedPreconditionError {}
/** A name to be given up or replaced has no claim, or one with another subject or source. */
export class ClaimMismatchError extends FailedPreconditionError {}
/** The lease was rolled back, which is final. After the local rows were saved this is an alarm: the names may have another owner. */
export class LeaseRolledBackError extends FailedPreconditionError {}
/** The lease was committed, which is final. */
export class LeaseCommittedError extends FailedPreconditionError {}
/** The UUID belongs to a lease with another batch. */
export class LeaseIdReusedError extends FailedPreconditionError {}
/** An operator froze the cell: it cannot begin leases, but finish those it has. */
export class CellFrozenError extends FailedPreconditionError {}
/** A limit of the coordinator, or of this client (`reason: "TOO_MANY_BEGINS_HERE"`). */
export class ResourceExhaustedError extends LeaseholdError {}
/** The coordinator cannot be reached, or failed; or this client's circuit breaker is open, and nothing was sent (`outcomeKnown`). */
export class UnavailableError extends LeaseholdError {}
/** No answer within the deadline. */
export class TimeoutError extends LeaseholdError {}
/** The caller's `AbortSignal` ended the call; its reason is the `cause`. */
export class CancelledError extends LeaseholdError {}

type ErrorClass = new (message: string, details: LeaseholdErrorDetails) => LeaseholdError;

const byReason: ReadonlyMap<string | undefined, ErrorClass> = new Map<string, ErrorClass>([
  ["LEASE_ROLLED_BACK", LeaseRolledBackError],
  ["LEASE_COMMITTED", LeaseCommittedError],
  ["LEASE_ID_REUSED", LeaseIdReusedError],
  ["CELL_FROZEN", CellFrozenError],
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

/** The value, or the error that says why there is none. */
export function valueOf<T>(answer: Answer<T>, leaseUuid?: string): T {
  if (answer.kind === "ok") return answer.value;
  throw errorOf(answer, leaseUuid);
}

/** Also of an error that another copy of this package made. */
export const isLeaseholdError = (error: unknown): error is LeaseholdError =>
  error instanceof LeaseholdError ||
  (error instanceof Error && "outcomeKnown" in error && "conflicts" in error && "code" in error);

/** The three-valued answer behind a call that throws, for code that must not take an unknown outcome for a no (rule M2). */
export async function answerOf<T>(work: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { kind: "ok", value: await work() };
  } catch (error) {
    return answerOfError(error);
  }
}

const UNKNOWN_CODES: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"]);

function answerOfError(error: unknown): Refused | Unknown {
  if (!isLeaseholdError(error)) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: "unknown", why: "unavailable", error: text, cause: error, outcomeKnown: false };
  }
  const {
    code,
    message,
    reason,
    status,
    field,
    conflicts,
    retryable,
    retryAfterMs,
    requestId,
    outcomeKnown,
  } = error;
  const common = {
    outcomeKnown,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(requestId === undefined ? {} : { requestId }),
  };
  if (UNKNOWN_CODES.has(code)) {
    const why = code === "DEADLINE_EXCEEDED" ? "timeout" : code === "CANCELLED" ? "cancelled" : "unavailable";
    return {
      kind: "unknown",
      why,
      error: message,
      cause: error,
      ...common,
      ...(status === undefined ? {} : { status }),
    };
  }
  return {
    kind: "refused",
    status: status ?? 0,
    code,
    detail: message,
    conflicts,
    retryable,
    ...common,
    ...(reason === undefined ? {} : { reason }),
    ...(field === undefined ? {} : { field }),
  };
}
