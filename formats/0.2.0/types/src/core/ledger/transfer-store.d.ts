import type { BeginRequest } from "../messages.ts";
import type { Sql } from "../ports.ts";
import type { PreparedShard } from "../transfer/messages.ts";
import type { BySide, DigestedClaims, TransferParty, TransferRange } from "../transfer/range.ts";
import type { LeaseRow } from "./store.ts";
export declare const TRANSFER_TABLES: string[];
export interface StoredStep {
    atMs: number;
    by: TransferParty;
    keyId: string;
    reason: string | null;
}
export type StoredReport = StoredStep & DigestedClaims;
export interface TransferRecord {
    prepared: StoredStep;
    accepted: StoredStep | null;
    decided: StoredStep | null;
    switchBackOf: string | null;
    isRebuilt: boolean;
    shards: PreparedShard[];
    reports: BySide<StoredReport | null>;
}
export interface StoredTransfer extends TransferRange {
    id: string;
    position: number;
    state: "PREPARED" | "CUT" | "ABORTED";
    record: TransferRecord;
}
export declare const transferStatements: {
    readonly list: "SELECT * FROM transfer WHERE position < ? ORDER BY position DESC LIMIT ?";
    readonly listFrom: "SELECT * FROM transfer WHERE from_cell = ? AND position < ? ORDER BY position DESC LIMIT ?";
};
export declare class TransferStore {
    #private;
    constructor(sql: Sql);
    find(id: string): StoredTransfer | undefined;
    write({ id, position, state, from, scope, record }: StoredTransfer): void;
    list(before: number, from: string | null, limit: number): StoredTransfer[];
    countOpen(): number;
    openPositions(): number[];
    openIds(limit: number): string[];
    markRebuilt(): void;
    forget(from: string, most: number, sinceMs: number): void;
}
export declare function recordOfGrant({ lease: id, transfer, caller }: BeginRequest, { position, created_at_ms: atMs }: LeaseRow, shards: PreparedShard[]): StoredTransfer;
