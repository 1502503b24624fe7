import type { BucketKey, Envelope, OperatorCall, OpKind, Source, Subject } from "../../kernel/messages.ts";

/** Asks for the owners of a name, now and before (K2). */
export interface ListPeriods extends Envelope {
  key: BucketKey;
  /** Only periods with a smaller epoch. Null: from the latest one. */
  before: number | null;
  /** Only the period that has this moment. Null: all periods. */
  atMs: number | null;
  limit: number;
}

/** A claim from its beginning to its end. It never changes meanwhile: each change begins another one. */
export interface Period {
  /** The spelling. */
  value: string;
  cell: string;
  subject: Subject;
  source: Source;
  scope: string | null;
  epoch: number;
  fromMs: number;
  /** Null: the claim has not ended. */
  untilMs: number | null;
  /** The lease that ended it: one of the same cell, or a transfer. */
  endedBy: { lease: string; kind: Exclude<OpKind, "create"> | "move" } | null;
}

export interface PeriodPage {
  /** The latest first. There may be none although more follow. */
  periods: Period[];
  /** The `before` of the next page. Null: there are no more periods. */
  next: number | null;
  /** All periods that ended after this time are listed, unless they were erased. Null: all of them. */
  completeSinceMs: number | null;
}

/** Erases the past periods of a name (K5). */
export interface ErasePeriods extends OperatorCall {
  key: BucketKey;
  /** If true, nothing is changed. */
  dryRun: boolean;
  /** For a shard that had the name before a growth: the epoch of the claim that the name has now (G9). */
  claimEpoch?: number | null;
}

export interface ErasedPeriods {
  erased: number;
  /** The changes in the log that have lost the name. The last message erases them. */
  changes: number;
  /** One message erases a limited number of them, and another one continues. */
  hasMore: boolean;
  /** The epoch of the claim, which is not erased. Null: the name has none here. */
  claimEpoch: number | null;
}
