import type { CanonicalRule } from "../../../common/canonical/rule.ts";
import type { AttemptId, BucketKey, Envelope, HistoryPoint } from "../../kernel/messages.ts";
import type { TransferRange } from "../transfer/range.ts";

// Worker → shard and ledger: the scrub (Z1 to Z5)

/**
 * When a step begins a pass if none is under way. `when_due`: if `scrubEveryS` have passed since the last one
 * began. `if_none`: always. `always`: the step also drops a pass that is under way.
 */
export type ScrubBegin = "when_due" | "if_none" | "always";

/** Carries out one step of a scrub. */
export interface ScrubStep extends Envelope {
  begin: ScrubBegin;
  /** The rules of bucket types in use. A shard does not check the canonical forms of other types. */
  rules?: [type: number, rule: CanonicalRule][];
}

/** What a scrub finds. The first seven are about rows of a shard, the others about leases of a ledger. */
export const scrubKinds = [
  "wrong_epoch",
  "wrong_digest",
  "wrong_source_order",
  "wrong_shard",
  "wrong_canonical_form",
  "unfit_hold",
  "unlogged_hold",
  "missing_holds",
  "unreadable_lease",
  "unlisted_lease",
  "undelivered_decision",
] as const;

export type ScrubKind = (typeof scrubKinds)[number];

/** The tables that a pass reads, in this order: four of a shard, two of a ledger. */
export const scrubTables = ["holds", "claims", "past_claims", "range_holds", "leases", "decisions"] as const;

export type ScrubTable = (typeof scrubTables)[number];

/** A row that breaks a rule. */
export interface ScrubFinding {
  kind: ScrubKind;
  table: ScrubTable;
  foundAtMs: number;
  /** The name of the row. Null: a finding about a range hold or a lease. */
  key: BucketKey | null;
  cell: string;
  /** The lease of a hold, or the one that ended a past claim. Null: a claim. */
  lease: string | null;
  /** The epoch of the row. Null: a finding about a lease. */
  epoch: number | null;
  /** The shard that lacks holds of a lease, and how many. Null: another finding. */
  missing: { shard: number; holds: number } | null;
}

/** One pass over all rows of a part. */
export interface ScrubPass {
  /** Counts the passes of the part. */
  number: number;
  startedAtMs: number;
  /** Null: the pass is under way. */
  endedAtMs: number | null;
  /** The table that the next step reads first. Null: the pass has ended. */
  table: ScrubTable | null;
  /** The rows that were checked. */
  rows: number;
  /** How many findings there are of each kind. */
  counts: Partial<Record<ScrubKind, number>>;
  /** The first of them. */
  findings: ScrubFinding[];
  /** Holds that inquiries have ended, because their executions were over (B8). */
  clearedHolds: number;
  /** Holds and leases that could not be compared, because the other part did not say. */
  unchecked: number;
}

/** What the cron needs to know of a scrub. */
export interface ScrubWork {
  /** Whether a step is due (Z5). */
  isDue: boolean;
  /** The findings of the last pass and of the running one. */
  findings: number;
}

export interface ScrubStatus {
  state: "complete" | "lost" | "reconciling";
  /** Null: no pass is under way. */
  running: ScrubPass | null;
  /** The last pass that has ended. Null: none has. */
  last: ScrubPass | null;
}

// Ledger → shard, for a scrub

/** An execution whose lease is granted, with the keys that it holds on the shard. */
export interface HeldExecution extends AttemptId {
  lease: string;
  epoch: number;
  /** The shard that granted it (G6). */
  grantedBy: number;
  keys: BucketKey[];
  /** What the lease of a transfer holds instead of keys. */
  range?: TransferRange;
}

/** Asks which holds of a cell's executions are there. It reads one row for each key. */
export interface CheckHolds extends Envelope {
  cell: string;
  executions: HeldExecution[];
}

export interface HoldCheck {
  /** For each execution, in order: the indexes of the keys that it does not hold. A range has the index 0. */
  missing: number[][];
  /** Whether the shard is reconciling after a loss, so that holds may be lost (H6). */
  isReconciling: boolean;
  /** The newest point of the ledger that the shard has stored, for the ledger to check (H2). */
  seen: HistoryPoint | null;
}

/** What the scrub of a ledger or shard has found. */
export interface ScrubMetrics {
  /** The findings of the last pass and of the running one. */
  findings: number;
  /** When the last pass ended. Null: none has. */
  endedAtMs: number | null;
  /** The rows that it checked. */
  rows: number;
  /** Holds and leases that it could not compare. */
  unchecked: number;
}

interface HasScrubWork {
  scrub: ScrubWork;
}

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    HISTORY_LOST: true;
  }
}

declare module "../../kernel/messages.ts" {
  interface MaintainAnswer extends HasScrubWork {}
  interface ShardWork extends HasScrubWork {}
}

interface HasScrubMetrics {
  scrub: ScrubMetrics;
}

declare module "../../kernel/metrics/messages.ts" {
  interface LedgerMetrics extends HasScrubMetrics {}
  interface ShardMetrics extends HasScrubMetrics {}
}
