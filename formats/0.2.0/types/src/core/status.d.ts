type ReportedCounts = Readonly<Partial<Record<string, number>>>;
export interface RunAges {
    startedAgoMs?: number | undefined;
    endedAgoMs: number;
}
interface ReportedReconciliation {
    outcome: "done" | "aborted";
    isFull?: boolean | undefined;
    counts?: ReportedCounts | undefined;
    staleLeases?: number | undefined;
    unreleasedDeletions?: number | undefined;
}
export declare const verificationStatuses: readonly ["done", "out_of_time", "needs_approval", "slot_lost", "stopped", "failed"];
export declare const driftKinds: readonly ["missing", "different", "extra", "duplicates", "unnameable"];
interface ReportedVerification {
    status: (typeof verificationStatuses)[number];
    isApplied?: boolean | undefined;
    counts?: ReportedCounts | undefined;
    approvalReason?: string | undefined;
}
interface Sdk {
    name: string;
    version: string;
}
export interface StatusReport {
    sdk: Sdk;
    reconciliation?: (ReportedReconciliation & RunAges) | undefined;
    verification?: (ReportedVerification & RunAges) | undefined;
}
export interface RunTimes {
    startedAtMs?: number | undefined;
    endedAtMs: number;
    lastDoneAtMs?: number | undefined;
}
export interface StoredStatus {
    reportedAtMs: number;
    sdk: Sdk;
    reconciliation?: (ReportedReconciliation & RunTimes) | undefined;
    verification?: (ReportedVerification & RunTimes) | undefined;
}
export interface ReportedStatus extends StoredStatus {
    nowMs: number;
}
export {};
