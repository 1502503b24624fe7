import type { Envelope } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    REPORT_PRUNED: true;
  }
}

/** Asks for the keys that were put on hold after a position (Q3). Null: only for the newest position. */
export interface ReportRequest extends Envelope {
  after: number | null;
}

/** A page of a report. If it is full (`hasMore`), it never changes, and another one may follow. */
export interface Report {
  after: number;
  /** The page has all transactions after `after`, up to this position. */
  through: number;
  /** The hashes of the keys (`keyHash`), by the position of the transaction that put them on hold. */
  held: { position: number; keys: string[] }[];
  hasMore: boolean;
}

declare module "../../kernel/metrics/messages.ts" {
  interface ShardMetrics {
    reports: number;
  }
}
