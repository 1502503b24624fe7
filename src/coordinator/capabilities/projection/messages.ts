import type { Envelope, HistoryPoint, LeaseCounts, Remembered } from "../../kernel/messages.ts";

/** A granted lease as the projection stores it. */
export interface OpenLease {
  /** Never changes. It identifies the lease in the projection, and orders a cell's leases by their grants. */
  createdPosition: number;
  createdAtMs: number;
  lease: string;
  counts: LeaseCounts;
}

/**
 * A lease that the projection has. Two leases may have the same created position if their ledger went back.
 */
export type KnownLease = [createdPosition: number, lease: string];

/** Compares the leases that the projection has with those that are open, in a range of created positions. */
export interface Pull extends Envelope {
  after: number;
  /** The end of the range. Null: it has none. */
  through: number | null;
  /** All leases that the projection has in this range. */
  has: KnownLease[];
  /** The open leases that one page may read. */
  limit: number;
}

export interface PullAnswer extends Remembered {
  /** The ledger's newest point, for D1 to remember (H2). Null before its first change. */
  point: HistoryPoint | null;
  /** The leases that are open and that the projection lacks. */
  granted: OpenLease[];
  /** The created positions of those that the projection has and that are not open. */
  decided: number[];
  /** The end of the range that was compared, which may be shorter. Null: nothing is left to compare. */
  through: number | null;
}
