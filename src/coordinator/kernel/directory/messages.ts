import type { OperatorCall } from "../messages.ts";
import type { Envelope, HistoryPoint } from "../messages.ts";
import type { Placement } from "../placement.ts";

// What the directory stores, and the messages to it.

export interface Cell {
  cell: string;
  name: string;
  address: string;
  locationHint: string | null;
  createdAtMs: number;
  updatedAtMs: number;
  /** When it was removed, by the clock of its ledger. Null: it was not. It is final (X5). */
  removedAtMs: number | null;
}

/** The directory's answer to an object that confirms its placement. */
export interface Confirmed {
  /** The placement that is in force. */
  placement: Placement;
}

export interface SnapshotRequest extends Envelope {}

/** Everything that requests need from the directory. Each isolate keeps a copy. */
export interface Snapshot {
  /** The placement in force. Before there is one, that of the message. */
  placement: Placement;
  /** How far the directory had got when it read this. Null before its first change. */
  point: HistoryPoint | null;
  /** Whether a placement is fixed (P2). */
  isPlaced: boolean;
  /** All cells that were ever registered. */
  cells: Cell[];
}

/** A page of copies of the directory's rows, if it has lost the rows themselves. Capabilities add theirs. */
export interface RestoreDirectory extends OperatorCall {
  cells: Cell[];
  /** True for the last page. */
  isLast: boolean;
}

/** What was restored, or would be. Capabilities add fields. */
export interface DirectoryReconciliation {
  /** The cells that were missing, or older than their copies. */
  cells: string[];
}
