import type { Change, ChangeEvent } from "../messages.ts";
import { type ChangedClaimRow, type ExecutionId, type HoldRow } from "./rows.ts";
import type { RangeHoldRow } from "./range-holds.ts";
type LeaseEvent = Extract<ChangeEvent, "granted" | "committed" | "rolled_back">;
type ClaimEvent = Exclude<ChangeEvent, LeaseEvent>;
type StoredDetails = [
    type: number,
    value: string,
    canonical: string | null,
    subjectType: number,
    subjectId: string,
    sourceType: number,
    sourceId: string,
    scope?: string
];
type StoredClaim = [event: ClaimEvent, uuid: string, epoch: number, details: StoredDetails | number];
export type StoredExecution = [
    cell: string,
    lease: string,
    epoch: number,
    events: LeaseEvent[],
    claims: StoredClaim[],
    movedFrom?: string
];
export type LoggedChange = Change & {
    movedFrom?: string;
};
export declare const MAX_TEXT_LENGTH = 500000;
type Execution = Pick<HoldRow, "cell" | "lease"> & Pick<ExecutionId, "epoch" | "granted_by">;
type TransferExecution = Execution & Pick<RangeHoldRow, "from_cell">;
export declare class ChangeNotes {
    #private;
    get isEmpty(): boolean;
    isTold(hold: Pick<ExecutionId, "epoch" | "granted_by">): boolean;
    noteGranted(hold: HoldRow): void;
    noteRolledBack(hold: HoldRow, isPart: boolean): void;
    noteCommitted(hold: HoldRow, claim: ChangedClaimRow | undefined, isPart: boolean): void;
    noteMoved(range: TransferExecution, claim: ChangedClaimRow): void;
    take(): string[];
}
export declare function loggedChanges(text: string, position: number, atMs: number): Generator<LoggedChange>;
export declare function withoutName(text: string, { type, canonical }: {
    type: number;
    canonical: string;
}, currentEpoch: number | undefined): {
    text: string;
    erased: number;
};
export {};
