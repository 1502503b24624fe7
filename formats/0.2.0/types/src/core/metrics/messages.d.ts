import type { CellState, Outcome, PartState } from "../messages.ts";
import type { ReportedStatus } from "../status.ts";
import type { Durations } from "./histogram.ts";
export interface PartMetrics {
    startedAtMs: number;
    state: PartState;
    sizeBytes: number;
    waitingWrites: number;
}
export interface ScrubMetrics {
    findings: number;
    endedAtMs: number | null;
    rows: number;
    unchecked: number;
}
export type BeginResult = "granted" | "repeated" | "conflict" | "refused" | "failed";
export interface BeginCount {
    result: BeginResult;
    reason: string;
    count: number;
}
export type WaitResult = "offered" | "ended" | "refused";
export interface DecisionCount {
    outcome: Outcome;
    by: "cell" | "operator";
    count: number;
}
export interface LedgerMetrics extends PartMetrics {
    scrub: ScrubMetrics;
    cellState: CellState;
    outstandingLeases: number;
    staleLeases: number;
    oldestLeaseMs: number;
    leaseAges: Durations;
    preparedTransfers: number;
    oldestTransferMs: number;
    unappliedDecisions: number;
    oldestUnappliedMs: number;
    runningBegins: number;
    waitingBegins: number;
    reported: ReportedStatus | null;
    begins: BeginCount[];
    decisions: DecisionCount[];
    fences: number;
    refusedDecisions: {
        reason: string;
        count: number;
    }[];
    beginDurations: Durations;
    waits: {
        result: WaitResult;
        count: number;
    }[];
    waitDurations: Durations;
    decisionDurations: Durations;
    exchangeDurations: Durations;
}
export interface ShardMetrics extends PartMetrics {
    scrub: ScrubMetrics;
    holds: number;
    holdsOfOneCell: number;
    waitingReads: number;
    exchanges: number;
    exchangeDurations: Durations;
    settles: number;
    waits: number;
    waitingBegins: number;
    missedOffers: number;
    refusedWaits: number;
    inquiries: number;
    sweeps: number;
    lookups: number;
    reports: number;
    changeReads: number;
    recordReads: number;
}
export interface DirectoryMetrics extends PartMetrics {
    cells: number;
    keys: number;
    revokedKeys: number;
    verificationSlots: {
        cell: string;
        heldMs: number;
    }[];
    verificationWaiting: number;
}
