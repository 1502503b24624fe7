import { type CellState, type HistoryPoint, type Lease, type LeaseCounts, type LeaseState, type PlacedLease, type StoredRemoval } from "../messages.ts";
import type { TransferRange } from "../transfer/range.ts";
import type { Sql } from "../ports.ts";
import { ChangeTimes } from "./change-times.ts";
import type { Positions } from "./position.ts";
export interface LeaseRow extends LeaseCounts {
    lease: string;
    decided: 0 | 1 | 2;
    position: number;
    created_position: number;
    created_at_ms: number;
    decided_at_ms: number | null;
    state: LeaseState;
    fence: 0 | 1;
    incarnation: number;
    counter: number;
    epochs: string | null;
    shards: number;
    payload: string | null;
    payload_hash: string;
    decided_by: string | null;
    decided_by_key: string | null;
    reason: string | null;
    renewed_at_ms: number | null;
    renewal_reason: string | null;
    transfer: string | null;
}
export declare const plainLease: {
    readonly renewed_at_ms: null;
    readonly renewal_reason: null;
    readonly transfer: null;
};
export declare const encodeRange: ({ from, scope }: TransferRange) => string;
export declare function decodeRange(stored: string): TransferRange;
type Counter = "cell_state_set_at_ms" | "cell_state_version" | "pruned_position" | "refused_through_ms";
export interface StoredLease extends LeaseRow {
    pending: 0 | 1;
}
export type OutcomeRow = Pick<StoredLease, "lease" | "created_position" | "position" | "created_at_ms" | "decided_at_ms" | "decided" | "pending">;
export type UnappliedRow = Pick<LeaseRow, "lease" | "created_position" | "position">;
export interface Applied {
    through: number;
    last: number;
    atMs: number;
    shards: Record<string, [incarnation: number, position: number]>;
    directory?: [incarnation: number, position: number];
}
export declare class LedgerStore {
    #private;
    readonly times: ChangeTimes;
    constructor(sql: Sql, cell: string);
    find(lease: string): StoredLease | undefined;
    findWhole(lease: string): StoredLease | undefined;
    insert(row: LeaseRow, over?: number): void;
    isApplied({ decided, pending, created_position: created }: StoredLease): boolean;
    delete(lease: string): void;
    decide(row: LeaseRow): void;
    renew(lease: string, nowMs: number, reason: string): void;
    granted(afterPosition: number, limit: number, throughPosition?: number): LeaseRow[];
    undecided(afterPosition: number, limit: number): LeaseRow[];
    unapplied(afterPosition: number, madeThrough: number, limit: number): UnappliedRow[];
    unexamined(madeThrough: number, limit: number): number[];
    lastUnexamined(): number;
    setPending(created: readonly number[], pending: 0 | 1): void;
    outcomes(kind: 1 | 2, afterPosition: number, limit: number): OutcomeRow[];
    forget(outcomes: readonly OutcomeRow[]): void;
    count(kind: 0 | 2): number;
    get through(): number;
    setApplied({ through, last }: {
        through: number;
        last: number;
    }, shards: ReadonlyMap<number, HistoryPoint>, directory: HistoryPoint | undefined): void;
    get directoryPoint(): HistoryPoint | undefined;
    shardPoints(): Map<number, HistoryPoint>;
    lastPosition(): number;
    lastChanges(): {
        position: number;
        atMs: number;
    }[];
    clockMarks(): string;
    setClockMarks(marks: string, nowMs: number): void;
    setLastPosition(position: number): void;
    takePosition(positions: Positions, nowMs: number): void;
    executionsOn(shard: number, decided: 0 | 1, limit: number): {
        lease: string;
        epoch: number;
        incarnation: number;
    }[];
    number(name: Counter): number;
    setNumber(name: Counter, value: number): void;
    cellState(): CellState;
    changeCellState(state: CellState, positions: Positions, nowMs: number): void;
    setCellState(state: CellState, nowMs: number): void;
    get removal(): StoredRemoval | undefined;
    setRemoval(removal: StoredRemoval): void;
    addReleased(claims: number): void;
    raiseStateVersion(by: number): void;
    isRevoked(keyId: string): boolean;
    get refusedThroughMs(): number;
    revoke(keys: readonly {
        keyId: string;
        expiresAtMs: number;
    }[], limit: number): void;
    leaseOf(row: LeaseRow, nowMs: number): Lease;
    placedLeaseOf(row: LeaseRow, nowMs: number): PlacedLease;
}
export {};
