import type { Holder, OpKind } from "../messages.ts";
export interface ClaimRow {
    bucket_type: number;
    canonical: string;
    value: string;
    uuid: string;
    cell: string;
    subject_type: number;
    subject_id: string;
    source_type: number;
    source_id: string;
    source_order: string;
    scope: string | null;
    epoch: number;
    created_at_ms: number;
    updated_at_ms: number;
    digest_0: number;
    digest_1: number;
    digest_2: number;
    digest_3: number;
}
export interface HoldRow {
    bucket_type: number;
    canonical: string;
    kind: OpKind;
    cell: string;
    lease: string;
    incarnation: number;
    counter: number;
    epoch: number;
    held_at_ms: number;
    uuid: string | null;
    value: string | null;
    subject_type: number | null;
    subject_id: string | null;
    source_type: number | null;
    source_id: string | null;
    source_order: string | null;
    scope: string | null;
    granted_by: number | null;
}
export type ChangedClaimRow = Pick<ClaimRow, "bucket_type" | "canonical" | "value" | "uuid" | "subject_type" | "subject_id" | "source_type" | "source_id" | "scope" | "epoch">;
export declare const CHANGED_COLUMNS = "bucket_type, canonical, value, uuid, subject_type, subject_id, source_type, source_id, scope, epoch";
export type ArrivingHoldRow = HoldRow & {
    source_order: string;
};
export type Claimant = Pick<HoldRow, "cell" | "subject_type" | "subject_id" | "source_type" | "source_id" | "scope" | "epoch">;
export type Holding = Pick<HoldRow, "kind" | "cell">;
export interface ExecutionId extends Holder {
    epoch: number;
    granted_by?: number | null;
}
export declare function executionKey(execution: ExecutionId | HoldRow): string;
export declare const epochText: ({ epoch, granted_by }: Pick<ExecutionId, "epoch" | "granted_by">) => string;
export declare const bucketText: (type: number, canonical: string) => string;
export declare function bucketOf(text: string): Pick<HoldRow, "bucket_type" | "canonical">;
