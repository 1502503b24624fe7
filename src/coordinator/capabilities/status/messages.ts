import type { CellCall } from "../../kernel/messages.ts";
import type { ReportedStatus, StatusReport } from "./status.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    STATUS_TOO_EARLY: true;
  }
}

/** What a cell says of itself (U1). */
export interface ReportStatus extends CellCall, StatusReport {}

/** The contradictions between a cell and its ledger (U4). */
export interface SeenContradictions {
  count: number;
  /** When the last one was counted. */
  lastAtMs: number;
}

interface Reported {
  /** What the cell said of itself last. Null: it has never reported. */
  reported: ReportedStatus | null;
}

declare module "../../kernel/messages.ts" {
  interface CellStatus extends Reported {}
  interface MaintainAnswer extends Reported {
    /** Null: there was none. */
    contradictions: SeenContradictions | null;
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface LedgerMetrics extends Reported {}
}
