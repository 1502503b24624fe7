import type { HookLists } from "../half.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";

/** What capabilities do in the directory besides their methods. */
export interface DirectoryHooks {
  /** Runs in the transaction that marks a cell as removed. */
  cellRemoved?(cell: string): void;
  metrics?(): Partial<DirectoryMetrics>;
}

export const noDirectoryHooks = (): HookLists<DirectoryHooks> => ({ cellRemoved: [], metrics: [] });
