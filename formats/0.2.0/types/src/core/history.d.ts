import type { DeclaredLoss, HistoryPoint, LostHistory, Operator, PartState, PartStatus } from "./messages.ts";
import type { Ports, Sql } from "./ports.ts";
import { type Refusal } from "./refusal.ts";
export declare const INCARNATION_TABLE = "CREATE TABLE incarnation (\n   incarnation INTEGER NOT NULL PRIMARY KEY,\n   first_position INTEGER NOT NULL\n ) STRICT, WITHOUT ROWID";
export declare const MAX_BELIEVED: number;
export declare const POSITION_MARGIN = 1000000;
export declare const TOLD_INCARNATIONS = 1000;
export declare const HISTORY_HEADER = "leasehold-history";
export interface StoredLoss extends LostHistory {
    isReconciling: boolean;
}
interface Declaration {
    declared?: DeclaredLoss;
    dryRun: boolean;
    operator: Operator;
}
export declare class History {
    #private;
    readonly before: HistoryPoint | undefined;
    constructor(ports: Pick<Ports, "sql" | "clock" | "randomness" | "log">, name: string, lastPosition: number);
    get incarnation(): number;
    get isRaised(): boolean;
    get point(): HistoryPoint | undefined;
    pointOfRows(position: number): HistoryPoint | undefined;
    get state(): PartState;
    get isLost(): boolean;
    get status(): PartStatus;
    incarnationAt(position: number): number;
    lastPositionAfter(position: number): number;
    raise(): void;
    madeDurable(position: number): void;
    refuse(seen: HistoryPoint | null | undefined, noticedBy: string): Refusal | undefined;
    refuseImpossible(seen: HistoryPoint | undefined, present: number, margin: number): Refusal | undefined;
    refuseBehind(noticedBy: string): Refusal | undefined;
    refuseAttempts(incarnations: Iterable<number>, noticedBy: string): Refusal | undefined;
    declare({ declared, dryRun, operator }: Declaration): Promise<boolean>;
    get refusal(): Refusal | undefined;
    get reconcilingRefusal(): Refusal | undefined;
    accept(seen: HistoryPoint, firstPosition: number, isReconciling?: boolean): () => void;
    inheritLoss(from: string): void;
    finish(): () => void;
    incarnations(limit: number): [incarnation: number, firstPosition: number][];
    includes({ incarnation, position }: HistoryPoint): boolean;
}
export declare function raiseIncarnation(sql: Sql, uuid: string, firstPosition: number, above?: number): number;
export declare function nextPoint(known: HistoryPoint | undefined, point: HistoryPoint | null, confirmed: HistoryPoint | null): HistoryPoint | undefined;
export declare function laterPoint(a: HistoryPoint | undefined, b: HistoryPoint): HistoryPoint;
export declare function abovePoints(a: HistoryPoint, b: HistoryPoint | null | undefined): HistoryPoint;
export declare const isSamePoint: (a: HistoryPoint | null | undefined, b: HistoryPoint) => boolean;
export {};
