import type { Limits } from "../limits.ts";
import type { BucketKey, OpKind, Period } from "../messages.ts";
import type { Sql } from "../ports.ts";
import type { RangeHoldRow } from "./range-holds.ts";
import type { ClaimRow, HoldRow } from "./rows.ts";
export declare const PAST_CLAIM_TABLES: string[];
type EndedKind = Exclude<OpKind, "create"> | "move";
export interface PastClaimRow extends Pick<ClaimRow, "bucket_type" | "canonical" | "value" | "cell" | "subject_type" | "subject_id" | "source_type" | "source_id" | "scope" | "epoch"> {
    from_ms: number;
    until_ms: number;
    ended_by: string;
    ended_kind: EndedKind;
}
export declare const pastClaimsStatement: (columns: string) => string;
export declare class PastClaims {
    #private;
    constructor(sql: Sql, { nameHistoryS, nameHistoryRows }: Limits, isFull: () => boolean);
    get completeSinceMs(): number | null;
    takeChanged(): boolean;
    keep(holds: readonly HoldRow[], nowMs: number): void;
    keepMoved({ from_cell, scope, lease, cut_at_ms }: RangeHoldRow, nowMs: number, most: number): number;
    list({ type, canonical }: BucketKey, before: number, limit: number): Period[];
    erase({ type, canonical }: BucketKey, most: number): {
        erased: number;
        hasMore: boolean;
    };
    count({ type, canonical }: BucketKey, most: number): number;
    dueMs(nowMs: number): number;
    drop(nowMs: number, most: number): void;
    incompleteBefore(atMs: number): void;
}
export declare const periodOfClaim: (claim: ClaimRow) => Period;
export {};
