import type { Envelope, HistoryPoint, OperatorCall } from "../messages.ts";
import type { Placement } from "../placement.ts";
import type { ClaimRow, HoldRow } from "../shard/rows.ts";
type GrowthPhase = "copying" | "cutting" | "cut";
export interface Growth {
    id: string;
    from: number;
    to: number;
    phase: GrowthPhase;
    startedAtMs: number;
    startedBy: string;
    cutAtMs: number | null;
    position: number;
}
export interface GrowthCopy extends Growth {
    isAborted?: true;
    isDropped?: true;
}
interface CopiedGrowth {
    growthCopiedAt: number;
}
export interface AskGrowth extends Envelope, CopiedGrowth {
}
export interface StartGrowth extends OperatorCall, CopiedGrowth {
    to: number;
}
export interface AbortGrowth extends OperatorCall, CopiedGrowth {
    id: string;
}
export interface CutGrowth extends OperatorCall, CopiedGrowth {
    id: string;
    sources: readonly GrowthProgress[];
}
export interface ConfirmCut extends Envelope, CopiedGrowth {
    id: string;
}
export interface FinishGrowth extends Envelope {
    id: string;
}
export interface Confirmed {
    placement: Placement;
    growth: Growth | null;
}
type SourceState = "none" | "copying" | "copied" | "pushing" | "cleaning" | "done";
export interface GrowthProgress {
    shard: number;
    growth: string | null;
    state: SourceState;
    copied: number;
    waiting: number;
    cleaned: number;
    waitsFor: "transfer" | "reconciliation" | null;
}
export declare const MAX_WAITING = 1000;
export declare const hasCopied: ({ id }: Growth, { growth, state, waiting, waitsFor }: GrowthProgress) => boolean;
export interface AbortedGrowth extends Pick<Growth, "id" | "position"> {
    phase: "aborted";
}
export interface ConcludedGrowth extends Omit<Growth, "phase"> {
    phase: "concluded";
}
export interface ShardSighting {
    cell: string;
    point: HistoryPoint;
}
export interface GrowthStep extends Envelope {
    growth: Growth | AbortedGrowth | ConcludedGrowth;
    sightings?: ShardSighting[];
    rows: number;
}
export interface MovedName {
    type: number;
    canonical: string;
    claim: ClaimRow | null;
    hold: HoldRow | null;
}
export interface Receive extends Envelope {
    growth: Pick<Growth, "id" | "from" | "to" | "position">;
    source: number;
    copy: string;
    confirmed: number;
    point: HistoryPoint | null;
    checked: HistoryPoint | null;
    names: MovedName[];
    ledgers: Record<string, HistoryPoint>;
    isComplete: boolean;
    isReconciling: boolean;
}
type ReceivedState = "received" | "active" | "wiping" | "unchecked" | "unknown";
export interface Received {
    state: ReceivedState;
    point: HistoryPoint | null;
    seen: HistoryPoint | null;
}
export {};
