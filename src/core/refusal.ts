import type { BucketTypeName } from "./registry.ts";

/** Every way a call can fail: status on the wire, and whether the same call may succeed later unchanged. One closed list. */
export const errorCodes = {
  INVALID_ARGUMENT: { status: 400, title: "The request is not valid", retryable: false },
  UNAUTHENTICATED: { status: 401, title: "No valid key", retryable: false },
  PERMISSION_DENIED: { status: 403, title: "This key may not do that", retryable: false },
  NOT_FOUND: { status: 404, title: "Not found", retryable: false },
  ALREADY_EXISTS: { status: 409, title: "It exists already", retryable: false },
  FAILED_PRECONDITION: { status: 409, title: "The current state does not allow it", retryable: false },
  ABORTED: { status: 409, title: "A name is leased at the moment", retryable: true },
  RESOURCE_EXHAUSTED: { status: 429, title: "A limit is reached", retryable: true },
  INTERNAL: { status: 500, title: "A fault in the coordinator", retryable: true },
  UNAVAILABLE: { status: 503, title: "A part of the coordinator cannot be reached", retryable: true },
  DEADLINE_EXCEEDED: { status: 504, title: "The deadline passed", retryable: true },
} as const satisfies Record<string, { status: number; title: string; retryable: boolean }>;

export type ErrorCode = keyof typeof errorCodes;

/** Finer than the code, for the refusals that a caller handles differently. One closed list. */
export type Reason =
  | "LEASE_ID_REUSED"
  | "LEASE_ROLLED_BACK"
  | "LEASE_COMMITTED"
  | "CELL_FROZEN"
  | "CELL_UNKNOWN"
  | "ROUTE_UNKNOWN"
  | "CELL_EXISTS"
  | "CONCURRENT_CHANGE"
  | "KEY_REVOKED"
  | "KEY_EXPIRED"
  | "TOO_MANY_BEGINS"
  | "TOO_MANY_LEASES"
  | "TOO_MANY_FENCES"
  | "NO_VERIFICATION_SLOT"
  | "BODY_TOO_LARGE"
  | "LEASE_TOO_LARGE"
  | "PLACEMENT_MISMATCH"
  | "MESSAGE_VERSION";

export type OpList = "creates" | "destroys" | "replaces";

/** Why one op cannot be had. `leased` passes; the others stay until somebody changes the claim. */
export type ConflictKind = "leased" | "taken" | "not_owner" | "absent" | "mismatch";

/** One op of a batch that stands in the way, at its place in the request. The other cell is never named. */
export interface Conflict {
  list: OpList;
  index: number;
  bucket: { type: BucketTypeName; value: string };
  kind: ConflictKind;
  /** Missing when nobody owns the bucket (`absent`). */
  owner?: "self" | "other";
  retryAfterMs?: number;
}

/** An expected failure, as a value: it crosses objects unharmed, which thrown errors do not. */
export interface Refusal {
  code: ErrorCode;
  detail: string;
  reason?: Reason;
  field?: string;
  retryAfterMs?: number;
  conflicts?: Conflict[];
}

export type Result<T> = { ok: true; value: T } | { ok: false; refusal: Refusal };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });

/** Rule A2. */
export const changedMeanwhile = (what: string): { ok: false; refusal: Refusal } =>
  refused(
    "FAILED_PRECONDITION",
    `${what} was changed at the same time; look at it, and repeat the call if it is still wanted`,
    {
      reason: "CONCURRENT_CHANGE",
    },
  );

export const refused = (
  code: ErrorCode,
  detail: string,
  more: Omit<Refusal, "code" | "detail"> = {},
): { ok: false; refusal: Refusal } => ({
  ok: false,
  refusal: { code, detail, ...more },
});
