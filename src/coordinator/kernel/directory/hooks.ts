import type { HookLists } from "../half.ts";
import type { Refusal } from "../refusal.ts";
import type { Envelope, Told } from "../messages.ts";
import type {
  Confirmed,
  DirectoryReconciliation,
  RestoreDirectory,
  Snapshot,
  SnapshotRequest,
} from "./messages.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";

/**
 * Something that operators have started and that takes longer than one call. Capabilities add fields.
 *
 * @public
 */
export interface RunningOperation {
  readonly id: string;
}

/** What copies have more than the rows that are left after a loss (H8). */
export interface MissingRows {
  readonly told: Partial<DirectoryReconciliation>;
  restore(): void;
}

/** What capabilities do in the directory besides their methods. */
export interface DirectoryHooks {
  /** Adds fields to all answers that tell more than their content. */
  tell?(): Partial<Told>;
  /** Refuses a message if its sender has read a copy in D1 that is newer than what is stored here. */
  guardCopies?(message: Envelope): Refusal | undefined;
  /** Adds fields to what an object is told that confirms its placement. */
  confirmed?(): Partial<Confirmed>;
  /** Tells which operations run that a capability keeps itself. */
  running?(): readonly RunningOperation[];
  /** Adds fields to what requests need from the directory. */
  snapshot?(message: SnapshotRequest): Partial<Snapshot>;
  /**
   * Compares copies with the rows that are left (H8).
   *
   * @param copies - undefined: there is nothing to compare
   */
  missing?(copies: RestoreDirectory | undefined): MissingRows;
  /** Runs in the transaction that accepts a loss, with a position above all that were seen (H8). */
  resumed?(): void;
  /** Runs in the transaction that marks a cell as removed. */
  cellRemoved?(cell: string): void;
  metrics?(): Partial<DirectoryMetrics>;
}

export const noDirectoryHooks = (): HookLists<DirectoryHooks> => ({
  tell: [],
  guardCopies: [],
  confirmed: [],
  running: [],
  snapshot: [],
  missing: [],
  resumed: [],
  cellRemoved: [],
  metrics: [],
});
