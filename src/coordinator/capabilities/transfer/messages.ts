/** The messages about transfers of scopes between cells (Y1 to Y10). */
import type { BucketKey, CellCall, Envelope } from "../../kernel/messages.ts";
import type {
  BySide,
  DigestedClaims,
  MovedClaims,
  TransferOp,
  TransferParty,
  TransferRange,
  TransferSide,
} from "./range.ts";

declare module "../../kernel/messages.ts" {
  interface BeginRequest {
    /** Only the ledger itself sets it: the lease is a transfer, which has no ops (Y1). */
    transfer?: TransferTerms;
  }
  interface Prepare {
    /** Present in the prepare of a transfer, which has no other op (Y1). */
    transfer?: TransferOp;
  }
  interface ToldOutcomes {
    /** Nothing is decided yet, but the transfer may be cut from now on (Y6). */
    PRECOMMITTED: true;
  }
  interface Decision {
    /** Present in the decision of a transfer. */
    transfer?: TransferRange;
  }
  interface HeldKey {
    /** The range hold that is in the way (Y3). */
    range?: TransferRange;
  }
  interface GrantedPrepare {
    counted?: BySide<DigestedClaims>;
  }
  interface ClaimRecord {
    /** The destination, if the lease is a transfer (Y1). */
    transferTo?: string;
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface LedgerMetrics {
    /** Transfers to this cell that are neither cut nor aborted. */
    preparedTransfers: number;
    /** The age of the oldest of them. 0 if there is none. */
    oldestTransferMs: number;
  }
}

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    TRANSFER_BLOCKED: true;
    TRANSFER_TOO_LARGE: true;
    TRANSFER_NOT_READY: true;
    TRANSFER_CUT: true;
    TRANSFER_ABORTED: true;
    TOO_MANY_TRANSFERS: true;
    SCOPE_EMPTY: true;
    SCOPE_CHANGED: true;
    SWITCH_BACK_OVER: true;
    LEASE_OF_TRANSFER: true;
  }
}

/** What a transfer begins with. */
export interface TransferTerms extends TransferRange {
  party: TransferParty;
  reason: string | null;
  switchBackOf: string | null;
  /** In a switch-back: the claims that each shard must have (Y9). */
  unchanged?: Record<number, MovedClaims>;
}

// Worker → shard

/** Asks what a shard has of a scope, as far as one message gets (M7). It changes nothing. */
export interface PlanTransfer extends Envelope, TransferRange {
  to: string;
  /** Where to continue. Null: at the first claim. */
  behind: BucketKey | null;
}

export interface TransferPlan {
  /** The claims of the source, by their types. */
  counts: { sourceType: number; type: number; claims: number }[];
  /** The claims of the destination that have the scope already. Only in the first answer. */
  present: number;
  /** Some leases of the source that have holds in the scope, so that a prepare would be refused. */
  leases: string[];
  /** A transfer with a range hold that would refuse a prepare. Null: none. */
  transfer: { to: string; id: string } | null;
  /** Null: no claim follows. */
  next: BucketKey | null;
}

// Worker → ledger of the destination

export interface TransferCall extends CellCall {
  party: TransferParty;
  /** The request's id in the log of the Worker. */
  requestId: string;
  /** The UUID of the transfer. It is the id of a lease of the destination's ledger. */
  transfer: string;
  reason?: string;
}

export interface PrepareTransfer extends TransferCall, TransferRange {
  /** The transfer that this one undoes, as the ledger of its destination has answered it just now. */
  switchBackOf?: Transfer;
}

/** Says what a cell has in its rows of the scope. */
export interface ReportTransfer extends TransferCall, DigestedClaims {
  side: TransferSide;
}

export interface DecideTransfer extends TransferCall {
  outcome: "CUT" | "ABORTED";
}

/** Asks for transfers in the order of their beginnings, the latest first. */
export interface ListTransfers extends CellCall {
  party: TransferParty;
  /** Only transfers that began before this position. Null: from the latest one. */
  before: number | null;
  /** Only transfers from this cell. Null: all. */
  from: string | null;
  limit: number;
}

/**
 * `PREPARED`: every shard holds the scope. `CUT`: the claims belong to the destination, and some shards still
 * rewrite them. `FINISHED`: all shards have rewritten them. `ABORTED`: nothing has changed.
 */
type TransferState = "PREPARED" | "CUT" | "FINISHED" | "ABORTED";

/** Who did a step of a transfer, and when. */
export interface TransferStep {
  atMs: number;
  /** How long ago that is, by the ledger's clock. */
  ageMs: number;
  by: TransferParty;
  keyId: string;
  reason: string | null;
}

/** What a cell has reported, or an operator for it. */
export interface TransferReport extends TransferStep, DigestedClaims {
  /** Whether it equals what the shards have counted. */
  isEqual: boolean;
}

/** What one shard has counted when it was prepared. */
export interface PreparedShard extends BySide<DigestedClaims> {
  shard: number;
  epoch: number;
}

export interface Transfer extends TransferRange {
  id: string;
  to: string;
  state: TransferState;
  /** The position of the ledger at which it began. */
  position: number;
  prepared: TransferStep;
  accepted: TransferStep | null;
  /** The cut or the abort. */
  decided: TransferStep | null;
  switchBackOf: string | null;
  /** True if the ledger has lost it and got it back from the shards: an operator decides it (Y10). */
  isRebuilt: boolean;
  shards: PreparedShard[];
  /** What each cell must report. The destination's also has the claims that it had before. */
  expected: BySide<DigestedClaims>;
  reports: BySide<TransferReport | null>;
  /** What a cut would be refused for. Empty: it may be cut. */
  missing: string[];
  /** The shards that have not confirmed the decision. Null: not decided, or not known since a restart. */
  unfinishedShards: number | null;
}

export interface TransferPage {
  transfers: Transfer[];
  /** The `before` of the next page. Null: no more follow. */
  next: number | null;
}
