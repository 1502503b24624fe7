import type { Placement } from "./placement.ts";

/**
 * Every code with which a call can fail: its HTTP status, its title, and whether the same call may succeed
 * later unchanged. The list is closed.
 */
export const errorCodes = {
  INVALID_ARGUMENT: { status: 400, title: "The request is not valid", retryable: false },
  UNAUTHENTICATED: { status: 401, title: "No valid key", retryable: false },
  PERMISSION_DENIED: { status: 403, title: "This key may not do that", retryable: false },
  NOT_FOUND: { status: 404, title: "Not found", retryable: false },
  ALREADY_EXISTS: { status: 409, title: "It already exists", retryable: false },
  FAILED_PRECONDITION: { status: 409, title: "The current state does not allow it", retryable: false },
  ABORTED: { status: 409, title: "A name is currently leased", retryable: true },
  RESOURCE_EXHAUSTED: { status: 429, title: "A limit is reached", retryable: true },
  INTERNAL: { status: 500, title: "A fault in the coordinator", retryable: true },
  UNAVAILABLE: { status: 503, title: "A part of the coordinator cannot be reached", retryable: true },
  DEADLINE_EXCEEDED: { status: 504, title: "The deadline passed", retryable: true },
} as const satisfies Record<string, { status: number; title: string; retryable: boolean }>;

export type ErrorCode = keyof typeof errorCodes;

/**
 * The refusals that a caller handles differently although they share a code. Each capability adds its own. A
 * release may add reasons to the list, and removes none.
 *
 * @public
 */
export interface Reasons {
  LEASE_ID_REUSED: true;
  LEASE_ROLLED_BACK: true;
  LEASE_COMMITTED: true;
  CELL_FROZEN: true;
  CELL_DRAINING: true;
  CELL_REMOVED: true;
  CELL_UNKNOWN: true;
  ROUTE_UNKNOWN: true;
  CONCURRENT_CHANGE: true;
  KEY_REVOKED: true;
  KEY_EXPIRED: true;
  TOO_MANY_BEGINS: true;
  TOO_MANY_LEASES: true;
  TOO_MANY_FENCES: true;
  TOO_MANY_READS: true;
  LEDGER_FULL: true;
  SHARD_FULL: true;
  SHARD_HOLDS_FULL: true;
  BODY_TOO_LARGE: true;
  BODY_TOO_SLOW: true;
  LEASE_TOO_LARGE: true;
  NO_CELLS: true;
  PLACEMENT_MISMATCH: true;
  FORMAT_UNKNOWN: true;
  UPGRADE_UNFINISHED: true;
  UNKNOWN_TABLES: true;
}

export type Reason = keyof Reasons;

export type OpList = "creates" | "destroys" | "replaces";

/** Why one op cannot be granted. `leased` is temporary; the other kinds last until the claim is changed. */
export type ConflictKind = "leased" | "taken" | "not_owner" | "absent" | "mismatch";

/** One op that prevents a begin, with its place in the request. The other cell is never named. */
export interface Conflict {
  list: OpList;
  index: number;
  kind: ConflictKind;
  /** Absent if the bucket has no owner (`absent`). */
  owner?: "self" | "other";
  retryAfterMs?: number;
}

/** An expected failure, as a value. Values pass between objects unchanged; thrown errors do not. */
export interface Refusal {
  code: ErrorCode;
  detail: string;
  reason?: Reason;
  field?: string;
  retryAfterMs?: number;
  conflicts?: Conflict[];
  /** With `PLACEMENT_MISMATCH`: the placement of the object that refuses. */
  placement?: Placement;
  /** True if another shard will serve the names in a moment (G5). */
  isMoving?: true;
}

export type Result<T> = { ok: true; value: T } | { ok: false; refusal: Refusal };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });

/** Returns all values, or the first refusal. */
export function valuesOf<T>(results: readonly Result<T>[]): Result<T[]> {
  const values: T[] = [];
  for (const result of results) {
    if (!result.ok) return result;
    values.push(result.value);
  }
  return ok(values);
}

/** The refusal of a change that was based on an older version (A2). */
export const changedMeanwhile = (what: string): { ok: false; refusal: Refusal } =>
  refused(
    "FAILED_PRECONDITION",
    `${what} was changed by another call; read it again, and repeat this call if the change is still needed`,
    { reason: "CONCURRENT_CHANGE" },
  );

export const refused = (
  code: ErrorCode,
  detail: string,
  more: Omit<Refusal, "code" | "detail"> = {},
): { ok: false; refusal: Refusal } => ({
  ok: false,
  refusal: { code, detail, ...more },
});

/**
 * The name of a field in a message. Names of unknown fields are the caller's own text, so they may have any
 * length and lone surrogates.
 */
export const shortened = (name: string): string =>
  (name.length <= 64 ? name : `${name.slice(0, 64)}…`).toWellFormed();
