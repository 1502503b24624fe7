import type { HookLists } from "../half.ts";
import type { ShardWork } from "../messages.ts";
import type { ShardMetrics } from "../metrics/messages.ts";

/** What capabilities do in a shard besides their methods. */
export interface ShardHooks {
  /** Adds fields to what the cron is told. */
  pinged?(): Partial<ShardWork>;
  metrics?(): Partial<ShardMetrics>;
}

export const noShardHooks = (): HookLists<ShardHooks> => ({ pinged: [], metrics: [] });
