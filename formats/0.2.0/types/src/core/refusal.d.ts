import type { Operation } from "./operations/operations.ts";
import type { Placement } from "./placement.ts";
export declare const errorCodes: {
    readonly INVALID_ARGUMENT: {
        readonly status: 400;
        readonly title: "The request is not valid";
        readonly retryable: false;
    };
    readonly UNAUTHENTICATED: {
        readonly status: 401;
        readonly title: "No valid key";
        readonly retryable: false;
    };
    readonly PERMISSION_DENIED: {
        readonly status: 403;
        readonly title: "This key may not do that";
        readonly retryable: false;
    };
    readonly NOT_FOUND: {
        readonly status: 404;
        readonly title: "Not found";
        readonly retryable: false;
    };
    readonly ALREADY_EXISTS: {
        readonly status: 409;
        readonly title: "It already exists";
        readonly retryable: false;
    };
    readonly FAILED_PRECONDITION: {
        readonly status: 409;
        readonly title: "The current state does not allow it";
        readonly retryable: false;
    };
    readonly ABORTED: {
        readonly status: 409;
        readonly title: "A name is currently leased";
        readonly retryable: true;
    };
    readonly RESOURCE_EXHAUSTED: {
        readonly status: 429;
        readonly title: "A limit is reached";
        readonly retryable: true;
    };
    readonly INTERNAL: {
        readonly status: 500;
        readonly title: "A fault in the coordinator";
        readonly retryable: true;
    };
    readonly UNAVAILABLE: {
        readonly status: 503;
        readonly title: "A part of the coordinator cannot be reached";
        readonly retryable: true;
    };
    readonly DEADLINE_EXCEEDED: {
        readonly status: 504;
        readonly title: "The deadline passed";
        readonly retryable: true;
    };
};
export type ErrorCode = keyof typeof errorCodes;
export type Reason = "LEASE_ID_REUSED" | "LEASE_ROLLED_BACK" | "LEASE_COMMITTED" | "CELL_FROZEN" | "CELL_DRAINING" | "CELL_NOT_DRAINING" | "CELL_HAS_LEASES" | "CELL_REMOVING" | "CELL_NOT_REMOVING" | "CELL_REMOVED" | "EXPORT_DIFFERS" | "CELL_UNKNOWN" | "ROUTE_UNKNOWN" | "CELL_EXISTS" | "CONCURRENT_CHANGE" | "KEY_REVOKED" | "KEY_EXPIRED" | "TOO_MANY_BEGINS" | "TOO_MANY_LEASES" | "TOO_MANY_FENCES" | "TOO_MANY_READS" | "LEDGER_FULL" | "SHARD_FULL" | "SHARD_HOLDS_FULL" | "NO_VERIFICATION_SLOT" | "BODY_TOO_LARGE" | "BODY_TOO_SLOW" | "LEASE_TOO_LARGE" | "HISTORY_LOST" | "NO_CELLS" | "PLACEMENT_MISMATCH" | "OPERATION_RUNNING" | "GROWTH_UNKNOWN" | "GROWTH_CUT" | "GROWTH_NOT_COPIED" | "GROWTH_SHARD_UNAVAILABLE" | "FORMAT_UNKNOWN" | "UPGRADE_BLOCKED" | "UPGRADE_UNFINISHED" | "UNKNOWN_TABLES" | "TYPE_IN_USE" | "TYPES_CHANGED" | "REPORT_PRUNED" | "CHANGES_PRUNED" | "TOO_MANY_STREAMS" | "AUDIT_FULL" | "STATUS_TOO_EARLY" | "TRANSFER_BLOCKED" | "TRANSFER_TOO_LARGE" | "TRANSFER_NOT_READY" | "TRANSFER_CUT" | "TRANSFER_ABORTED" | "TOO_MANY_TRANSFERS" | "SCOPE_EMPTY" | "SCOPE_CHANGED" | "SWITCH_BACK_OVER" | "LEASE_OF_TRANSFER";
export type OpList = "creates" | "destroys" | "replaces";
export type ConflictKind = "leased" | "taken" | "not_owner" | "absent" | "mismatch";
export interface Conflict {
    list: OpList;
    index: number;
    kind: ConflictKind;
    owner?: "self" | "other";
    retryAfterMs?: number;
}
export interface Refusal {
    code: ErrorCode;
    detail: string;
    reason?: Reason;
    field?: string;
    retryAfterMs?: number;
    conflicts?: Conflict[];
    placement?: Placement;
    operation?: Operation;
    isMoving?: true;
}
export type Result<T> = {
    ok: true;
    value: T;
} | {
    ok: false;
    refusal: Refusal;
};
export declare const ok: <T>(value: T) => Result<T>;
export declare function valuesOf<T>(results: readonly Result<T>[]): Result<T[]>;
export declare const changedMeanwhile: (what: string) => {
    ok: false;
    refusal: Refusal;
};
export declare const refused: (code: ErrorCode, detail: string, more?: Omit<Refusal, "code" | "detail">) => {
    ok: false;
    refusal: Refusal;
};
export declare const shortened: (name: string) => string;
