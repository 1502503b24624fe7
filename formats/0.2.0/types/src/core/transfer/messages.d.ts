import type { BucketKey, CellCall, Envelope } from "../messages.ts";
import type { BySide, DigestedClaims, TransferParty, TransferRange, TransferSide } from "./range.ts";
export interface PlanTransfer extends Envelope, TransferRange {
    to: string;
    behind: BucketKey | null;
}
export interface TransferPlan {
    counts: {
        sourceType: number;
        type: number;
        claims: number;
    }[];
    present: number;
    leases: string[];
    transfer: {
        to: string;
        id: string;
    } | null;
    next: BucketKey | null;
}
export interface TransferCall extends CellCall {
    party: TransferParty;
    requestId: string;
    transfer: string;
    reason?: string;
}
export interface PrepareTransfer extends TransferCall, TransferRange {
    switchBackOf?: Transfer;
}
export interface ReportTransfer extends TransferCall, DigestedClaims {
    side: TransferSide;
}
export interface DecideTransfer extends TransferCall {
    outcome: "CUT" | "ABORTED";
}
export interface ListTransfers extends CellCall {
    party: TransferParty;
    before: number | null;
    from: string | null;
    limit: number;
}
type TransferState = "PREPARED" | "CUT" | "FINISHED" | "ABORTED";
export interface TransferStep {
    atMs: number;
    ageMs: number;
    by: TransferParty;
    keyId: string;
    reason: string | null;
}
export interface TransferReport extends TransferStep, DigestedClaims {
    isEqual: boolean;
}
export interface PreparedShard extends BySide<DigestedClaims> {
    shard: number;
    epoch: number;
}
export interface Transfer extends TransferRange {
    id: string;
    to: string;
    state: TransferState;
    position: number;
    prepared: TransferStep;
    accepted: TransferStep | null;
    decided: TransferStep | null;
    switchBackOf: string | null;
    isRebuilt: boolean;
    shards: PreparedShard[];
    expected: BySide<DigestedClaims>;
    reports: BySide<TransferReport | null>;
    missing: string[];
    unfinishedShards: number | null;
}
export interface TransferPage {
    transfers: Transfer[];
    next: number | null;
}
export {};
