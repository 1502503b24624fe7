/**
 * What objects say to each other. Every message carries the version of this page and the placement it was computed under;
 * a receiver refuses what it does not know (rules M5, P1).
 */
import type { Placement } from "./placement.ts";
import type { Conflict, OpList, Refusal } from "./refusal.ts";
import type { BucketTypeName, SourceTypeName, SubjectTypeName } from "./registry.ts";

export const MESSAGE_VERSION = 1;

export interface Envelope {
  version: number;
  placement: Placement;
}

export type OpKind = "create" | "destroy" | "replace";

export interface Subject {
  type: SubjectTypeName;
  id: string;
}

export interface Source {
  type: SourceTypeName;
  id: string;
}

export interface BucketKey {
  type: BucketTypeName;
  canonical: string;
}

/** One checked op of a batch: canonical, placed, and at its place in the request. */
export interface Op extends BucketKey {
  kind: OpKind;
  index: number;
  /** As typed; kept and shown. */
  value: string;
  /** A destroy may leave both out. */
  subject?: Subject;
  source?: Source;
  /** Of the claim that a destroy or replace is meant for (rule B10). */
  epoch?: number;
  shard: number;
}

export const listOf = (kind: OpKind): OpList => `${kind}s`;

/** One execution of a begin: never reused (rule B3). Order: incarnation, then counter. */
export interface AttemptId {
  incarnation: number;
  counter: number;
}

/** Who holds: cell and lease and attempt, everywhere together. */
export interface Holder extends AttemptId {
  cell: string;
  lease: string;
}

// Ledger → shard

export interface Prepare extends Holder {
  ops: Op[];
  /** Destroys of claims that do not exist are counted instead of refused. */
  allowMissing: boolean;
}

export type Outcome = "COMMITTED" | "ROLLED_BACK";

/** `epoch` null: a release of an attempt that was never granted, whatever its holds were stamped with. */
export interface Decision extends Holder {
  outcome: Outcome;
  epoch: number | null;
  keys: BucketKey[];
}

export interface Exchange extends Envelope {
  /** Applied before the prepares (rule N2). */
  decisions: Decision[];
  prepares: Prepare[];
}

/** `epoch` 0: nothing had to be held here. `missing`: destroys of absent claims. */
export type PrepareAnswer =
  | { granted: true; epoch: number; missing: number }
  | { granted: false; conflicts: Conflict[]; held: BucketKey[] };

/** One answer per prepare, in order. Decisions need none: an answer to the message means that all of them are applied. */
export interface ExchangeAnswer {
  prepares: PrepareAnswer[];
}

/** Asks a shard to find out about the holds on these keys (rule B8). */
export interface Settle extends Envelope {
  keys: BucketKey[];
}

/** `free`: the hold is gone. `granted`, `running`: of another lease. `unknown`: its ledger cannot be asked. */
export type HoldState = "free" | "granted" | "running" | "unknown";

export interface SettleAnswer {
  states: HoldState[];
}

// Shard → ledger

export interface Question extends AttemptId {
  lease: string;
  epoch: number;
}

export interface Inquiry extends Envelope {
  shard: number;
  questions: Question[];
}

/**
 * Rule B8. `committed` and `rolled_back` are to be applied, `gone` means: drop the hold, `unknown`: nobody may say, because the ledger cannot be
 * asked or is not the newest instance.
 */
export type Verdict = "granted" | "running" | "committed" | "rolled_back" | "gone" | "unknown";

export interface InquiryAnswer {
  verdicts: Verdict[];
}

// Worker → ledger

/** Who calls, as the credential says. */
export interface Caller {
  role: "cell" | "operator";
  keyId: string;
}

export interface CellCall extends Envelope {
  caller: Caller;
}

export interface BeginRequest extends CellCall {
  lease: string;
  ops: Op[];
  payloadHash: string;
  allowMissing: boolean;
}

export interface DecideRequest extends CellCall {
  lease: string;
  outcome: Outcome;
  reason?: string;
}

export interface LeaseRequest extends CellCall {
  lease: string;
}

/** Granted leases in the order of their grants, after a position. */
export interface ListLeasesRequest extends CellCall {
  createdAfterMs: number;
  afterPosition: number;
  limit: number;
}

export type LeaseState = "GRANTED" | Outcome;

export interface LeaseCounts {
  creates: number;
  destroys: number;
  replaces: number;
  /** Destroys that found no claim and were allowed to. */
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
  reason?: string;
  /** While GRANTED, and on a single read only: not in a list, nor in the answer to the begin that brought them. */
  ops?: Op[];
}

export interface BeginAnswer {
  lease: Lease;
  /** False: the lease existed before (rule B2). */
  created: boolean;
}

export interface LeasePage {
  leases: Lease[];
  /** To go on after; 0 on the last page. */
  nextPosition: number;
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
  cell: string;
  epoch: number;
  status: RecordStatus;
  lease: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/** `unknown`: the ledger to ask cannot be reached; never a "not found" (rule R2). */
export type LookupFound = { kind: "record"; record: ClaimRecord } | { kind: "none" } | { kind: "unknown" };

export interface LookupAnswer {
  found: LookupFound[];
}

/** Records of one cell and source type with a source order in (after, upTo], ordered by it; whole source ids only (rule R3). */
export interface ListRecordsRequest extends Envelope {
  cell: string;
  sourceType: SourceTypeName;
  bucketTypes: BucketTypeName[];
  after: string;
  upTo: string | null;
  limit: number;
}

export interface ListRecordsAnswer {
  records: ClaimRecord[];
  /** The source order up to which none is missing: where to go on after. */
  through: string;
  /** True: every record of the range is here. */
  complete: boolean;
}

/** Of source orders: (after, upTo]. */
export interface SourceRange {
  after: string;
  /** Null: to the end. */
  upTo: string | null;
}

/** Digests of one cell's claims of one source type, range by range (rule R4). Ranges are in order and apart. */
export interface DigestRecordsRequest extends Envelope {
  cell: string;
  sourceType: SourceTypeName;
  bucketTypes: BucketTypeName[];
  ranges: SourceRange[];
}

/** The first 128 bits of a claim's SHA-256, as four 32-bit numbers: SQLite adds those up exactly. */
export type DigestWords = readonly [number, number, number, number];

export interface RangeDigest {
  count: number;
  /** The sum of the claims' words, each modulo 2^32. */
  words: DigestWords;
  /** A hold touches the range, or a claim in it has no digest: it proves nothing. */
  held: boolean;
  newestUpdatedAtMs: number | null;
}

/** One digest per range, in order. */
export interface DigestRecordsAnswer {
  digests: RangeDigest[];
}

// Worker → ledger, for operators and the cron

export type CellState = "ACTIVE" | "FROZEN";

export interface CellStatus {
  cell: string;
  state: CellState;
  /** Grows with every change of the state. */
  stateVersion: number;
  outstandingLeases: number;
  unappliedDecisions: number;
}

/** What is decided on a state holds for that one only (rule A2): a message that comes late finds another version. */
export interface SetState extends Envelope {
  state: CellState;
  stateVersion: number;
}

/** A lease's row as the fleet record keeps it. `position` grows with every change of any lease of the cell. */
export interface LeaseChange extends Lease {
  position: number;
  /** Never changes; orders a cell's leases by when they began. */
  createdPosition: number;
}

export interface Pull extends Envelope {
  afterPosition: number;
  limit: number;
}

export interface PullAnswer {
  changes: LeaseChange[];
  /** Nothing up to here is missing from this page and the pages before it. */
  throughPosition: number;
  more: boolean;
}

/** After a pull that reached the end: everything up to here is safe in the fleet record. */
export interface Maintain extends Envelope {
  pulledPosition: number;
}

export interface MaintainAnswer {
  pruned: number;
  unapplied: number;
}

// Ledger, shard → directory

/** `cell` is given by a ledger: it must be registered. */
export interface Confirm extends Envelope {
  cell?: string;
}

/** What a peer returns: a value, or why it refused. */
export type Reply<T> = { ok: true; value: T } | { ok: false; refusal: Refusal };
