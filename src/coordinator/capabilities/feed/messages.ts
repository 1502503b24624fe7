import type { Envelope, Source, Subject } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    CHANGES_PRUNED: true;
    TOO_MANY_STREAMS: true;
  }
}

/**
 * What happened. A lease was `granted`, `committed` or `rolled_back`; a claim began (`claimed`), was changed
 * by a replace (`replaced`), came to another cell by a transfer (`moved`) or ended (`released`).
 */
export const changeEvents = [
  "granted",
  "committed",
  "rolled_back",
  "claimed",
  "replaced",
  "moved",
  "released",
] as const;

export type ChangeEvent = (typeof changeEvents)[number];

/** The claim of a change. `details` is null if the period of the name was erased since (K5). */
interface ChangedClaim {
  uuid: string;
  /** The number of the bucket type. */
  type: number;
  details: {
    canonical: string;
    value: string;
    subject: Subject;
    source: Source;
    scope: string | null;
  } | null;
}

/** Something that happened on a shard, as the change feed tells it (F2). */
export interface Change {
  event: ChangeEvent;
  position: number;
  atMs: number;
  cell: string;
  lease: string;
  /** Of the claim, or of the execution of the lease on this shard. */
  epoch: number;
  /** Present if the event is about a claim. */
  claim?: ChangedClaim;
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
