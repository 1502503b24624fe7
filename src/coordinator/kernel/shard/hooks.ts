import type { HookLists } from "../half.ts";
import type { ShardWork } from "../messages.ts";
import type { ShardMetrics } from "../metrics/messages.ts";

/** What capabilities do in a shard besides their methods. */
export interface ShardHooks {
  /** Adds fields to what the cron is told. */
  pinged?(): Partial<ShardWork>;
  metrics?(): Partial<ShardMetrics>;
  /** A hold of a cell is made or ends. Null: the claims of many cells come or go without holds. */
  touched?(cell: string | null): void;
}

export const noShardHooks = (): HookLists<ShardHooks> => ({ pinged: [], metrics: [], touched: [] });
