import { type Limits } from "../limits.ts";
import type { BucketKey, HistoryPoint } from "../messages.ts";
import type { Clock, Sql } from "../ports.ts";
import { HeldNames } from "./held-names.ts";
import { ChangeNotes, type LoggedChange } from "./logged-changes.ts";
export declare const LOG_TABLE = "CREATE TABLE log (\n   slot INTEGER NOT NULL PRIMARY KEY,\n   position INTEGER NOT NULL,\n   at_ms INTEGER NOT NULL,\n   ledgers TEXT NOT NULL,\n   held TEXT,\n   changes TEXT,\n   dropped INTEGER NOT NULL,\n   holds TEXT,\n   ended TEXT,\n   open_from INTEGER NOT NULL\n ) STRICT, WITHOUT ROWID";
export interface LoggedHolds {
    position: number;
    keys: string[];
}
export interface LoggedTransaction {
    position: number;
    changes: Iterable<LoggedChange>;
}
export type StoredPoints = Record<string, [incarnation: number, position: number]>;
export declare class ShardLog {
    #private;
    readonly changes: ChangeNotes;
    readonly held: HeldNames;
    constructor(sql: Sql, clock: Pick<Clock, "now">, { shardBytes }?: Pick<Limits, "shardBytes">, size?: number);
    get position(): number;
    nextEpoch(): number;
    jumpTo(position: number): void;
    reset(): void;
    loseChanges(): void;
    get hasJumped(): boolean;
    ledgerPoint(cell: string): HistoryPoint | undefined;
    get ledgerPoints(): Record<string, HistoryPoint>;
    noteLater(cell: string, point: HistoryPoint): void;
    note(cell: string, point: HistoryPoint | null, confirmed: HistoryPoint | null): boolean;
    noteHeld(keyHash: string): void;
    holdsAfter(position: number, limit: number): LoggedHolds[] | undefined;
    changesAfter(position: number, limit: number): LoggedTransaction[] | undefined;
    append(): void;
    eraseName(key: BucketKey, currentEpoch: number | undefined, { dryRun }?: {
        dryRun?: boolean | undefined;
    }): number;
    discard(): void;
}
