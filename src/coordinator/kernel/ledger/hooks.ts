import type { HookLists } from "../half.ts";
import type { CellStatus, MaintainAnswer } from "../messages.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";

/** What capabilities do in a ledger besides their methods. */
export interface LedgerHooks {
  /** Adds fields to what the ledger tells of its cell. */
  status?(): Partial<CellStatus>;
  /** Adds fields to what the cron is told. */
  maintained?(): Partial<MaintainAnswer>;
  metrics?(): Partial<LedgerMetrics>;
}

export const noLedgerHooks = (): HookLists<LedgerHooks> => ({ status: [], maintained: [], metrics: [] });
