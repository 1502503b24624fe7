import type { HookLists } from "../half.ts";
import type { Snapshot, SnapshotRequest } from "./messages.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";

/** What capabilities do in the directory besides their methods. */
export interface DirectoryHooks {
  /** Adds fields to what requests need from the directory. */
  snapshot?(message: SnapshotRequest): Partial<Snapshot>;
  /** Runs in the transaction that accepts a loss, with a position above all that were seen (H8). */
  resumed?(): void;
  /** Runs in the transaction that marks a cell as removed. */
  cellRemoved?(cell: string): void;
  metrics?(): Partial<DirectoryMetrics>;
}

export const noDirectoryHooks = (): HookLists<DirectoryHooks> => ({
  snapshot: [],
  resumed: [],
  cellRemoved: [],
  metrics: [],
});
