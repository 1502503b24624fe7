import type { verificationStatuses } from "../../../common/status/verification-statuses.ts";

/** Counts of a run, by their names in the API. */
type ReportedCounts = Readonly<Partial<Record<string, number>>>;

/** When a run was, before the report was sent. So the clock of the cell doesn't matter. */
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

/**
 * The counts of a verification that are drift. They don't add up: a drift that turns out to be a second row
 * with the same name is in `missing` or `different`, and in `duplicates`. Names of other cells are in
 * `missing` or `different` too.
 */
export const driftKinds = ["missing", "different", "extra", "duplicates", "unnameable"] as const;

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

/** What a cell says of itself. A part that is left out stays as it was reported before (U3). */
export interface StatusReport {
  sdk: Sdk;
  reconciliation?: (ReportedReconciliation & RunAges) | undefined;
  verification?: (ReportedVerification & RunAges) | undefined;
}

/** When a run was, by the clock of the ledger. */
export interface RunTimes {
  startedAtMs?: number | undefined;
  endedAtMs: number;
  /** When the last run that was done has ended. */
  lastDoneAtMs?: number | undefined;
}

export interface StoredStatus {
  reportedAtMs: number;
  sdk: Sdk;
  reconciliation?: (ReportedReconciliation & RunTimes) | undefined;
  verification?: (ReportedVerification & RunTimes) | undefined;
}

/** What a cell said of itself last. */
export interface ReportedStatus extends StoredStatus {
  /** When the ledger answered, for ages. */
  nowMs: number;
}
