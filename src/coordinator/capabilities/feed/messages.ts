import type { Change, Envelope } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    CHANGES_PRUNED: true;
    TOO_MANY_STREAMS: true;
  }
}

/** Asks for what happened on a shard after a position (F4). Null: only for the newest position. */
export interface ChangesRequest extends Envelope {
  after: number | null;
  /** Only changes that this cell made. Null: of all cells. */
  cell: string | null;
  /** Only claims of names of this type that began or ended. Null: all changes. */
  type: number | null;
  /** A page ends with the transaction that brings it to this many changes. */
  limit: number;
}

/** A page of changes. If `hasMore`, another one follows at once. */
export interface ChangesPage {
  after: number;
  /** The page has all transactions after `after`, up to this position. */
  through: number;
  /** The incarnations that reached `after` and `through`: with them, both are points of the history (H2). */
  incarnations: [after: number, through: number];
  changes: Change[];
  hasMore: boolean;
}

declare module "../../kernel/metrics/messages.ts" {
  interface ShardMetrics {
    changeReads: number;
  }
}
