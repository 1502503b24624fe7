/**
 * The messages between objects. Every message carries the placement that its sender computed with, and a
 * receiver refuses another one (P1). `Stamp` in formats.ts is added when a message is sent (M9).
 *
 * Types are their numbers in the deployment's set of types (T1). Positions are numbers that only grow. Fields
 * that end in `Ms` are milliseconds, and those that end in `AtMs` are milliseconds since 1970.
 */
import type { Stamp } from "./formats.ts";
import type { Placement } from "./placement.ts";
import type { Conflict, OpList, Refusal } from "./refusal.ts";

/**
 * A moment in the history of a ledger, a shard or the directory (H1): an incarnation, and the largest
 * position that it had made durable.
 */
export interface HistoryPoint {
  incarnation: number;
  position: number;
}

export interface Envelope {
  placement: Placement;
  /** The newest point that the sender has seen of the receiver (H2). Absent if it has seen none. */
  seen?: HistoryPoint;
  /**
   * The spans for which this message is sent, as `traceparent` headers: one for each of the calls that share
   * it, at most `MAX_TRACES`. Absent if none of them is traced. No decision depends on it.
   */
  traces?: readonly string[];
}

/** Who makes a change, as identified by its key, and why. */
export interface Operator {
  keyId: string;
  /** The request's id in the log of the Worker. */
  requestId: string;
  reason: string | null;
}

/** A change that an operator makes. */
export interface OperatorCall extends Envelope {
  operator: Operator;
}

export type OpKind = "create" | "destroy" | "replace";

export interface Subject {
  type: number;
  id: string;
}

export interface Source {
  type: number;
  id: string;
}

export interface BucketKey {
  type: number;
  canonical: string;
}

/**
 * One validated op of a batch, with its canonical form and its shard. `index` is its place in its list of the
 * request.
 */
export interface Op extends BucketKey {
  kind: OpKind;
  index: number;
  /** The spelling that the caller typed. It is stored and shown. */
  value: string;
  /** Both are optional for a destroy. */
  subject?: Subject;
  source?: Source;
  /** What the claim belongs to, such as an organization. No destroy has one. */
  scope?: string;
  /** The epoch of the claim that a destroy or replace is meant for (B10). */
  epoch?: number;
  shard: number;
}

export const listOf = (kind: OpKind): OpList => `${kind}s`;

/** A replace of a name that nobody has is held as a create (B12). */
export const heldAs = (kind: OpKind, hasClaim: boolean): OpKind =>
  kind === "replace" && !hasClaim ? "create" : kind;

/**
 * Identifies one attempt of a begin. It is never reused (B3). Attempts are ordered by incarnation, then by
 * counter.
 */
export interface AttemptId {
  incarnation: number;
  counter: number;
}

/** Identifies the owner of a hold: cell, lease and attempt together. */
export interface Holder extends AttemptId {
  cell: string;
  lease: string;
}

// Ledger → shard

export interface Prepare extends Holder {
  ops: Op[];
  /**
   * If true, destroys of claims that do not exist are counted as `missing` and not refused, and replaces of
   * such claims make them (B12).
   */
  allowMissing: boolean;
  /** Present if a verification makes this begin (H6). */
  isVerification?: true;
}

export type Outcome = "COMMITTED" | "ROLLED_BACK";

/**
 * What a ledger tells shards of an execution. Capabilities add steps before the decision.
 *
 * @public
 */
export interface ToldOutcomes extends Record<Outcome, true> {}

/** A commit or rollback, sent to one shard. It applies to all holds there of one execution. */
export interface Decision extends Holder {
  outcome: keyof ToldOutcomes;
  /** Null: releases an attempt that was never granted, whatever the epoch of its holds. */
  epoch: number | null;
  /** The shard that granted the holds. Absent: this one (G6). */
  grantedBy?: number;
  /** The names of a release. Nobody may know its execution. */
  keys?: BucketKey[];
}

export interface Exchange extends Envelope {
  cell: string;
  /** The newest durable point of the ledger. Null before its first change. */
  point: HistoryPoint | null;
  /**
   * A point that the ledger has: the one that the shard has answered, or the newest one that was there when
   * this instance of the ledger started (H5). Null: there was none.
   */
  confirmed: HistoryPoint | null;
  /** The shard applies them before the prepares (N2). */
  decisions: Decision[];
  prepares: Prepare[];
}

/** A name that is leased. */
export interface HeldKey extends BucketKey {}

/**
 * A shard's answer to one prepare. `epoch` identifies the execution; 0 means that the shard holds nothing for
 * it. `missing` counts the destroys of absent claims. `held` lists the keys of the conflicts that are only
 * `leased`.
 */
export type PrepareAnswer = GrantedPrepare | { granted: false; conflicts: Conflict[]; held: HeldKey[] };

/** @public */
export interface GrantedPrepare {
  granted: true;
  epoch: number;
  missing: number;
}

/** The shard carried out nothing of this prepare, but of others in the same message (H6). */
export interface RefusedPrepare {
  granted: false;
  refusal: Refusal;
}

/**
 * One answer per prepare, in order. Decisions need no answer: if the message is answered, all of them are
 * applied, except those of leases in `unapplied`.
 */
export interface ExchangeAnswer {
  /** The newest point of the ledger that the shard has stored, for the ledger to check (H2). */
  seen: HistoryPoint | null;
  /** The newest durable point of the shard. Null before its first change. */
  point: HistoryPoint | null;
  /** Present if the shard has carried out nothing: the ledger must first say that it has `seen` (H5). */
  isUnchecked?: true;
  prepares: (PrepareAnswer | RefusedPrepare)[];
  /**
   * The leases whose decisions the shard has not applied: those that take several transactions, and those of
   * names that other shards have not handed over to it yet (G5).
   */
  unapplied?: string[];
}

/** Makes a shard inquire about the holds on these keys (B8). */
export interface Settle extends Envelope {
  keys: HeldKey[];
}

/**
 * What a shard found out about the hold on one key. `free`: no hold is left. `awaited`: no hold is left, but
 * a begin waits for the name (B11). `granted`: the lease of the hold is granted. `running`: its begin is
 * running. `unknown`: its ledger cannot be asked.
 */
export type HoldState = "free" | "awaited" | "granted" | "running" | "unknown";

export interface SettleAnswer {
  /** The newest durable point of the shard. Null before its first change. */
  point: HistoryPoint | null;
  /** One state per key, in order. */
  states: HoldState[];
}

// Shard → ledger

export interface Question extends AttemptId {
  lease: string;
  epoch: number;
  /** The shard that granted the hold. Absent: the one that asks (G6). */
  grantedBy?: number;
}

export interface Inquiry extends Envelope {
  shard: number;
  questions: Question[];
}

/**
 * A ledger's answer about one execution (B8). The shard applies `committed` and `rolled_back`, and drops the
 * hold on `gone`. `unknown` says nothing about the hold: either the ledger cannot be asked, or it is not the
 * newest instance.
 */
export type Verdict = "granted" | "running" | "committed" | "rolled_back" | "gone" | "unknown";

export interface InquiryAnswer {
  /** One verdict per question, in order. */
  verdicts: Verdict[];
  /** The newest durable point of the ledger, which has confirmed the point in the inquiry (H5). */
  point: HistoryPoint | null;
}

// Worker → ledger

/** The caller, as identified by its key. */
export interface Caller {
  role: "cell" | "operator";
  keyId: string;
  /** When the key expires. */
  expiresAtMs: number;
}

export interface CellCall extends Envelope {
  caller: Caller;
}

export interface BeginRequest extends CellCall {
  /** The request's id in the log of the Worker. */
  requestId: string;
  lease: string;
  ops: Op[];
  payloadHash: string;
  allowMissing: boolean;
  /** Identifies the call of a begin that may wait, for `GiveUp`. */
  call?: string;
  /** Present if a verification makes this begin (H6, X1). */
  isVerification?: true;
}

/** Says that nobody waits for the answer to this call any more. */
export interface GiveUp extends Envelope {
  lease: string;
  call: string;
}

export interface DecideRequest extends CellCall {
  /** The request's id in the log of the Worker. */
  requestId: string;
  lease: string;
  outcome: Outcome;
  reason?: string;
}

export interface LeaseRequest extends CellCall {
  lease: string;
}

export type LeaseState = "GRANTED" | Outcome;

export interface LeaseCounts {
  creates: number;
  destroys: number;
  replaces: number;
  /** Destroys whose claim did not exist, which `allowMissing` permitted. */
  missing: number;
}

export interface Lease {
  lease: string;
  cell: string;
  state: LeaseState;
  createdAtMs: number;
  ageMs: number;
  counts: LeaseCounts;
  decidedAtMs?: number;
  decidedBy?: string;
  /** The id of the key, if an operator decided. */
  decidedByKey?: string;
  reason?: string;
  /** When its cell renewed it last, and why (C8). Absent: never. */
  renewedAtMs?: number;
  renewalReason?: string;
  /** Present only while the lease is GRANTED, and only in the answer to a read of this one lease. */
  ops?: Op[];
}

/** The positions of shards that have prepared a lease, by the number of the shard (Q9). */
export type ShardPositions = Record<number, number>;

/** A lease, with the positions from which on lookups show it. */
export interface PlacedLease extends Lease {
  /** Absent once the decision is applied everywhere, because the ledger has dropped them (S2). */
  positions?: ShardPositions;
}

export interface BeginAnswer {
  lease: PlacedLease;
  /** False if the lease existed before (B2). */
  created: boolean;
}

// Worker → shard

export interface LookupRequest extends Envelope {
  keys: BucketKey[];
}

type RecordStatus = "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";

export interface ClaimRecord extends BucketKey {
  uuid: string;
  value: string;
  subject: Subject;
  source: Source;
  /** Null: the claim has none. */
  scope: string | null;
  cell: string;
  epoch: number;
  status: RecordStatus;
  lease: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/**
 * The answer about one key. `unknown`: the ledger cannot be reached. This is never shown as "not found" (R2).
 */
export type LookupFound = { kind: "record"; record: ClaimRecord } | { kind: "none" } | { kind: "unknown" };

export interface LookupAnswer {
  found: LookupFound[];
  /** For each key: true if it had no hold when it was first read. Only such an answer may be kept (Q2). */
  settled: boolean[];
  /** The shard's position when the keys were first read; 0 before its first change. */
  position: number;
}

/**
 * The place of some holds of an execution among those of a shard: the shard's position when it got them, and
 * their part of the execution.
 */
export type HoldPosition = readonly [since: number, part: number];

/**
 * The first 128 bits of a claim's SHA-256, as four 32-bit numbers. SQLite adds numbers of this size exactly.
 */
export type DigestWords = readonly [number, number, number, number];

/** What a shard has left to do for the cron. */
export interface ShardWork {}

/** Asks a shard for its work. */
export interface PingShard extends Envelope {}

// Worker → ledger, for operators and the cron

/**
 * The states of a cell. Each capability adds its own.
 *
 * @public
 */
export interface CellStates {
  ACTIVE: true;
}

export type CellState = keyof CellStates;

export interface CellStatus {
  cell: string;
  state: CellState;
  /** Grows with every change of the state (A2). */
  stateVersion: number;
  /** When the state was last set. 0: never. */
  stateSetAtMs: number;
  outstandingLeases: number;
  unappliedDecisions: number;
  /** The size of the ledger's database. */
  storedBytes: number;
  /** The position of the last change of a lease. While it stays the same, no claim of the cell changes. */
  position: number;
}

/** What others have of a ledger that has lost it. Each capability adds its own. */
export interface LedgerCopies extends OperatorCall {}

/** Sent after the pull. */
export interface Maintain extends Envelope {}

/**
 * What a ledger remembers of other parts, for the cron. Capabilities add fields.
 *
 * @public
 */
export interface Remembered {}

export interface MaintainAnswer extends Remembered {
  /** Outcomes that were deleted by this call. */
  pruned: number;
  state: CellState;
  /** Decisions that some shard has not applied yet. */
  unapplied: number;
  /** Granted leases that are stale, without those that the cell has renewed (C8). */
  staleLeases: number;
}

// Ledger, shard → directory

/**
 * Confirms the placement before the first use of an object. A ledger also sends its `cell`, which must be
 * registered.
 */
export interface Confirm extends Envelope {
  cell?: string;
}

/** What the sender of an answer tells besides the answer. Capabilities add fields. */
export interface Told extends Partial<Stamp> {
  /** The sender was sent messages by older code within the last minute (M9). */
  hearsOlder?: true;
}
