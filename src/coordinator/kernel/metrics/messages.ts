import type { CellState, Outcome } from "../messages.ts";
import type { Durations } from "./histogram.ts";

// What objects answer when they are asked for metrics: what an instance has counted since it started, and
// what it can tell without reading many rows.

/** What every object tells. */
export interface PartMetrics {
  /** When this instance began to count. */
  startedAtMs: number;
  sizeBytes: number;
  /** The writes that wait for the next transaction. */
  waitingWrites: number;
}

/**
 * `granted`: a new lease. `repeated`: the lease existed before (B2). `conflict`: names were in the way.
 * `refused`: by a limit or a state. `failed`: the outcome is unknown to the caller, who repeats the call.
 */
export type BeginResult = "granted" | "repeated" | "conflict" | "refused" | "failed";

export interface BeginCount {
  result: BeginResult;
  /** The kind of the conflict, or the reason or code of the refusal. Empty if the begin succeeded. */
  reason: string;
  count: number;
}

export interface DecisionCount {
  outcome: Outcome;
  by: "cell" | "operator";
  count: number;
}

export interface LedgerMetrics extends PartMetrics {
  cellState: CellState;
  outstandingLeases: number;
  /**
   * Of the oldest 1,000 outstanding leases, those that were neither granted nor renewed within `staleS`.
   */
  staleLeases: number;
  /** The age of the oldest outstanding lease. 0 if there is none. */
  oldestLeaseMs: number;
  /** The ages of the oldest 1,000 outstanding leases. */
  leaseAges: Durations;
  unappliedDecisions: number;
  /** The age of the oldest of them. 0 if there is none. */
  oldestUnappliedMs: number;
  runningBegins: number;
  begins: BeginCount[];
  /** The first decision about each lease; repeated calls don't count. */
  decisions: DecisionCount[];
  /** Rollbacks of leases that the ledger didn't know (C7). */
  fences: number;
  refusedDecisions: { reason: string; count: number }[];
  /** From the arrival of a begin to its answer. */
  beginDurations: Durations;
  decisionDurations: Durations;
  /** From a message to a shard to its answer. */
  exchangeDurations: Durations;
}

export interface ShardMetrics extends PartMetrics {
  /** The names that are held. */
  holds: number;
  /** Those that are held for the cell with the most of them. */
  holdsOfOneCell: number;
  /** The reads of many rows that wait for their turn (M7). */
  waitingReads: number;
  exchanges: number;
  /** From the arrival of an exchange to its answer. */
  exchangeDurations: Durations;
  settles: number;
  /** The questions that this shard has sent to ledgers (B8). */
  inquiries: number;
  sweeps: number;
  /** The names that were looked up. */
  lookups: number;
  /** Messages for lists and digests of records. */
  recordReads: number;
}

export interface DirectoryMetrics extends PartMetrics {}
