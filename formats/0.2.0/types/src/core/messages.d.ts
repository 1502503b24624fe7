import type { CanonicalRule } from "./canonical/rule.ts";
import type { Stamp } from "./formats.ts";
import type { Placement } from "./placement.ts";
import type { ReportedStatus, StatusReport } from "./status.ts";
import type { Conflict, OpList, Refusal } from "./refusal.ts";
import type { BySide, DigestedClaims, MovedClaims, TransferOp, TransferParty, TransferRange } from "./transfer/range.ts";
export interface HistoryPoint {
    incarnation: number;
    position: number;
}
export type ShardPoints = Record<number, HistoryPoint>;
export interface Envelope {
    placement: Placement;
    seen?: HistoryPoint;
    shards?: ShardPoints;
    traces?: readonly string[];
}
export interface Operator {
    keyId: string;
    requestId: string;
    reason: string | null;
}
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
export interface Op extends BucketKey {
    kind: OpKind;
    index: number;
    value: string;
    subject?: Subject;
    source?: Source;
    scope?: string;
    epoch?: number;
    shard: number;
}
export declare const listOf: (kind: OpKind) => OpList;
export declare const heldAs: (kind: OpKind, hasClaim: boolean) => OpKind;
export interface AttemptId {
    incarnation: number;
    counter: number;
}
export interface Holder extends AttemptId {
    cell: string;
    lease: string;
}
export interface Prepare extends Holder {
    ops: Op[];
    allowMissing: boolean;
    isVerification?: true;
    transfer?: TransferOp;
}
export type Outcome = "COMMITTED" | "ROLLED_BACK";
export interface Decision extends Holder {
    outcome: Outcome | "PRECOMMITTED";
    epoch: number | null;
    grantedBy?: number;
    keys?: BucketKey[];
    transfer?: TransferRange;
}
export interface Exchange extends Envelope {
    cell: string;
    point: HistoryPoint | null;
    confirmed: HistoryPoint | null;
    decisions: Decision[];
    prepares: Prepare[];
}
export type HeldKey = BucketKey & {
    range?: TransferRange;
};
export type PrepareAnswer = {
    granted: true;
    epoch: number;
    missing: number;
    counted?: BySide<DigestedClaims>;
} | {
    granted: false;
    conflicts: Conflict[];
    held: HeldKey[];
};
export interface RefusedPrepare {
    granted: false;
    refusal: Refusal;
}
export interface ExchangeAnswer {
    seen: HistoryPoint | null;
    point: HistoryPoint | null;
    isUnchecked?: true;
    prepares: (PrepareAnswer | RefusedPrepare)[];
    unapplied?: string[];
}
export interface Settle extends Envelope {
    keys: HeldKey[];
}
export type HoldState = "free" | "awaited" | "granted" | "running" | "unknown";
export interface SettleAnswer {
    point: HistoryPoint | null;
    states: HoldState[];
}
export interface Waiting {
    cell: string;
    lease: string;
}
export interface WaitForName extends Envelope, Waiting {
    key: BucketKey;
}
export type WaitState = "offered" | "waiting" | "full";
export interface WaitAnswer {
    state: WaitState;
}
export interface LeaveQueue extends Envelope, Waiting {
    key: BucketKey;
}
export interface Question extends AttemptId {
    lease: string;
    epoch: number;
    grantedBy?: number;
}
export interface Inquiry extends Envelope {
    shard: number;
    questions: Question[];
}
export type Verdict = "granted" | "running" | "committed" | "rolled_back" | "gone" | "unknown";
export interface InquiryAnswer {
    verdicts: Verdict[];
    point: HistoryPoint | null;
}
export interface Caller {
    role: "cell" | "operator";
    keyId: string;
    expiresAtMs: number;
}
export interface CellCall extends Envelope {
    caller: Caller;
}
export interface ReportStatus extends CellCall, StatusReport {
}
export interface Authorize extends CellCall {
    read?: string;
}
export interface EndRead extends Envelope {
    read: string;
}
export interface BeginRequest extends CellCall {
    requestId: string;
    lease: string;
    ops: Op[];
    payloadHash: string;
    allowMissing: boolean;
    waitMs?: number;
    call?: string;
    isVerification?: true;
    isRemoval?: true;
    transfer?: TransferTerms;
}
interface TransferTerms extends TransferRange {
    party: TransferParty;
    reason: string | null;
    switchBackOf: string | null;
    unchanged?: Record<number, MovedClaims>;
}
export interface GiveUp extends Envelope {
    lease: string;
    call: string;
}
export interface DecideRequest extends CellCall {
    requestId: string;
    lease: string;
    outcome: Outcome;
    reason?: string;
    isRemoval?: true;
}
export interface RenewRequest extends CellCall {
    lease: string;
    reason: string;
}
export interface LeaseRequest extends CellCall {
    lease: string;
}
export interface ListLeasesRequest extends CellCall {
    createdAfterMs: number;
    afterPosition: number;
    limit: number;
}
export type LeaseState = "GRANTED" | Outcome;
export interface LeaseStatus {
    state: LeaseState;
    createdAtMs: number;
    renewedAtMs: number | null;
}
export interface LeaseCounts {
    creates: number;
    destroys: number;
    replaces: number;
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
    decidedByKey?: string;
    reason?: string;
    renewedAtMs?: number;
    renewalReason?: string;
    ops?: Op[];
}
export type ShardPositions = Record<number, number>;
export interface PlacedLease extends Lease {
    positions?: ShardPositions;
}
export interface BeginAnswer {
    lease: PlacedLease;
    created: boolean;
}
export interface LeasePage {
    leases: Lease[];
    nextPosition: number;
}
export interface LookupRequest extends Envelope {
    keys: BucketKey[];
}
type RecordStatus = "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
export interface ClaimRecord extends BucketKey {
    uuid: string;
    value: string;
    subject: Subject;
    source: Source;
    scope: string | null;
    cell: string;
    epoch: number;
    status: RecordStatus;
    lease: string | null;
    transferTo?: string;
    createdAtMs: number;
    updatedAtMs: number;
}
export type LookupFound = {
    kind: "record";
    record: ClaimRecord;
} | {
    kind: "none";
} | {
    kind: "unknown";
};
export interface LookupAnswer {
    found: LookupFound[];
    settled: boolean[];
    position: number;
}
export interface ReportRequest extends Envelope {
    after: number | null;
}
export interface Report {
    after: number;
    through: number;
    held: {
        position: number;
        keys: string[];
    }[];
    hasMore: boolean;
}
export interface ChangesRequest extends Envelope {
    after: number | null;
    cell: string | null;
    type: number | null;
    limit: number;
}
export declare const changeEvents: readonly ["granted", "committed", "rolled_back", "claimed", "replaced", "moved", "released"];
export type ChangeEvent = (typeof changeEvents)[number];
interface ChangedClaim {
    uuid: string;
    type: number;
    details: {
        canonical: string;
        value: string;
        subject: Subject;
        source: Source;
        scope: string | null;
    } | null;
}
export interface Change {
    event: ChangeEvent;
    position: number;
    atMs: number;
    cell: string;
    lease: string;
    epoch: number;
    claim?: ChangedClaim;
}
export interface ChangesPage {
    after: number;
    through: number;
    incarnations: [after: number, through: number];
    changes: Change[];
    hasMore: boolean;
}
export type RecordPosition = readonly [order: string, bucketType: number, canonical: string];
export type HoldPosition = readonly [since: number, part: number];
export interface ListRecordsRequest extends Envelope {
    cell: string;
    sourceType: number;
    bucketTypes: number[] | null;
    after: string;
    upTo: string | null;
    cursor: ListCursor | null;
    limit: number;
}
export interface ListCursor {
    behind: RecordPosition;
    scan: ArrivalScan | null;
}
export interface ArrivalScan {
    behind: HoldPosition | null;
    found: RecordPosition[];
    isCut: boolean;
}
export interface ListRecordsAnswer {
    records: ClaimRecord[];
    next: ListCursor | null;
}
export interface SourceRange {
    after: string;
    upTo: string | null;
}
export interface DigestRecordsRequest extends Envelope {
    cell: string;
    sourceType: number;
    bucketTypes: number[] | null;
    ranges: SourceRange[];
    cursor: DigestCursor | null;
}
export interface DigestCursor {
    scan: {
        behind: HoldPosition | null;
        held: number[];
    };
    range: number;
    rest: {
        behind: RecordPosition;
        changes: string;
    } | null;
}
export type DigestWords = readonly [number, number, number, number];
export interface RangeDigest {
    count: number;
    words: DigestWords;
    held: boolean;
    newestUpdatedAtMs: number | null;
}
export interface DigestRecordsAnswer {
    digests: RangeDigest[];
    next: DigestCursor | null;
}
export interface ListPeriods extends Envelope {
    key: BucketKey;
    before: number | null;
    atMs: number | null;
    limit: number;
}
export interface Period {
    value: string;
    cell: string;
    subject: Subject;
    source: Source;
    scope: string | null;
    epoch: number;
    fromMs: number;
    untilMs: number | null;
    endedBy: {
        lease: string;
        kind: Exclude<OpKind, "create"> | "move";
    } | null;
}
export interface PeriodPage {
    periods: Period[];
    next: number | null;
    completeSinceMs: number | null;
}
export interface ErasePeriods extends OperatorCall {
    key: BucketKey;
    dryRun: boolean;
    claimEpoch?: number | null;
}
export interface ErasedPeriods {
    erased: number;
    changes: number;
    hasMore: boolean;
    claimEpoch: number | null;
}
export interface ShardWork {
    auditEntries: number;
    scrub: ScrubWork;
    handedOver?: HandedOver;
}
export interface PingShard extends Envelope {
    newShard?: number;
}
export interface HandedOver {
    point: HistoryPoint | null;
    ledgers: Record<string, HistoryPoint>;
}
export declare const cellStates: readonly ["ACTIVE", "DRAINING", "FROZEN", "REMOVING", "REMOVED"];
export type CellState = (typeof cellStates)[number];
export type SettableState = Exclude<CellState, "REMOVING" | "REMOVED">;
export interface CellStatus {
    cell: string;
    state: CellState;
    stateVersion: number;
    stateSetAtMs: number;
    outstandingLeases: number;
    unappliedDecisions: number;
    storedBytes: number;
    reported: ReportedStatus | null;
    position: number;
    removal: StoredRemoval | null;
}
export interface StoredRemoval {
    records: number;
    released: number;
    position: number;
    end: RemovalEnd | null;
}
export interface RemovalEnd {
    atMs: number;
    operator: Operator;
}
export interface ApproveRemoval extends Envelope {
    position: number;
    records: number;
}
export interface RemovalStep extends OperatorCall {
    stateVersion: number;
    limit: number;
}
export interface RemovalProgress {
    state: CellState;
    released: number;
    left: number;
    end: RemovalEnd | null;
}
export interface ListCellClaims extends Envelope {
    cell: string;
    limit: number;
}
export interface CellClaims {
    claims: (BucketKey & {
        epoch: number;
    })[];
    transfers: string[];
}
export interface FindNames extends Envelope {
    subjectType: number;
    subjectId: string;
    behind: BucketKey | null;
    limit: number;
}
export interface FoundNames {
    keys: BucketKey[];
    next: BucketKey | null;
}
export type CellClaimPosition = [number, string, number, string];
export interface CountCellClaims extends Envelope {
    cell: string;
    behind: CellClaimPosition | null;
}
export interface ClaimCount {
    sourceType: number;
    type: number;
    claims: number;
}
export interface CellClaimCounts {
    counts: ClaimCount[];
    next: CellClaimPosition | null;
}
export interface RevokeCellKey extends OperatorCall {
    keyId: string;
    expiresAtMs: number;
}
export interface SetState extends OperatorCall {
    state: SettableState;
    stateVersion: number;
}
export interface OpenLease {
    createdPosition: number;
    createdAtMs: number;
    lease: string;
    counts: LeaseCounts;
}
export type KnownLease = [createdPosition: number, lease: string];
export interface Pull extends Envelope {
    after: number;
    through: number | null;
    has: KnownLease[];
    limit: number;
}
export interface PullAnswer extends SeesDirectory {
    point: HistoryPoint | null;
    granted: OpenLease[];
    decided: number[];
    through: number | null;
}
export interface Maintain extends Envelope {
    directory?: ToldDirectory;
    isRemoved?: boolean;
}
export interface ToldDirectory {
    point: HistoryPoint;
    confirmed: HistoryPoint | null;
}
interface SeesDirectory {
    directory: HistoryPoint | null;
}
export interface SeenContradictions {
    count: number;
    lastAtMs: number;
}
export interface MaintainAnswer extends SeesDirectory {
    pruned: number;
    state: CellState;
    reported: ReportedStatus | null;
    contradictions: SeenContradictions | null;
    unapplied: number;
    staleLeases: number;
    auditEntries: number;
    scrub: ScrubWork;
    removed: RemovalEnd | null;
}
export type PartState = "complete" | "lost" | "reconciling";
export interface LostHistory {
    noticedBy: string;
    seen: HistoryPoint | null;
    point: HistoryPoint | null;
    noticedAtMs: number;
}
export interface PartStatus {
    state: PartState;
    point: HistoryPoint | null;
    loss: LostHistory | null;
}
export interface DeclaredLoss {
    incarnation: number;
}
export interface ReconcileShard extends OperatorCall {
    cells: string[];
    dryRun: boolean;
    declared?: DeclaredLoss;
}
interface LostLeases {
    cell: string;
    outstanding: number;
    decided: number;
    leases: string[];
}
export interface ShardReconciliation {
    status: PartStatus;
    lost: LostLeases[];
    unreachable: string[];
}
export interface FinishShard extends OperatorCall {
    removedCells: readonly string[];
}
export interface ReconcileLedger extends OperatorCall {
    dryRun: boolean;
    declared?: DeclaredLoss;
    revokedKeys: {
        keyId: string;
        expiresAtMs: number;
    }[];
    removedAtMs: number | null;
    copied?: HistoryPoint;
}
export interface RebuiltLeases {
    shard: number;
    holds: number;
    leases: number;
}
export interface LedgerReconciliation {
    status: PartStatus;
    cellState: CellState;
    rebuilt: RebuiltLeases[];
    leases: number;
    unreachable: number[];
}
export interface KnowledgeRequest extends Envelope {
    shard: number;
    point: HistoryPoint | null;
    incarnations: [incarnation: number, firstPosition: number][];
}
export interface Knowledge extends Omit<LostLeases, "cell"> {
    seen: HistoryPoint | null;
}
export interface ListHolds extends Envelope {
    cell: string;
    after: HoldPosition | null;
    limit: number;
}
export interface HeldOp extends Omit<Op, "index" | "shard" | "epoch">, AttemptId {
    lease: string;
    heldEpoch: number;
    grantedBy?: number;
}
export interface HeldRange extends TransferRange, AttemptId {
    lease: string;
    heldEpoch: number;
    isCut: boolean;
    counted: BySide<DigestedClaims>;
}
export interface HoldPage {
    holds: HeldOp[];
    ranges: HeldRange[];
    next: HoldPosition | null;
    point: HistoryPoint | null;
    seen: HistoryPoint | null;
}
export type ScrubBegin = "when_due" | "if_none" | "always";
export interface ScrubStep extends Envelope {
    begin: ScrubBegin;
    rules?: [type: number, rule: CanonicalRule][];
}
export declare const scrubKinds: readonly ["wrong_epoch", "wrong_digest", "wrong_source_order", "wrong_shard", "wrong_canonical_form", "unfit_hold", "unlogged_hold", "missing_holds", "unreadable_lease", "unlisted_lease", "undelivered_decision"];
export type ScrubKind = (typeof scrubKinds)[number];
export declare const scrubTables: readonly ["holds", "claims", "past_claims", "range_holds", "leases", "decisions"];
export type ScrubTable = (typeof scrubTables)[number];
export interface ScrubFinding {
    kind: ScrubKind;
    table: ScrubTable;
    foundAtMs: number;
    key: BucketKey | null;
    cell: string;
    lease: string | null;
    epoch: number | null;
    missing: {
        shard: number;
        holds: number;
    } | null;
}
export interface ScrubPass {
    number: number;
    startedAtMs: number;
    endedAtMs: number | null;
    table: ScrubTable | null;
    rows: number;
    counts: Partial<Record<ScrubKind, number>>;
    findings: ScrubFinding[];
    clearedHolds: number;
    unchecked: number;
}
export interface ScrubWork {
    isDue: boolean;
    findings: number;
}
export interface ScrubStatus {
    state: PartState;
    running: ScrubPass | null;
    last: ScrubPass | null;
}
export interface HeldExecution extends AttemptId {
    lease: string;
    epoch: number;
    grantedBy: number;
    keys: BucketKey[];
    range?: TransferRange;
}
export interface CheckHolds extends Envelope {
    cell: string;
    executions: HeldExecution[];
}
export interface HoldCheck {
    missing: number[][];
    isReconciling: boolean;
    seen: HistoryPoint | null;
}
export interface Confirm extends Envelope {
    cell?: string;
}
export interface ComparePoints extends Envelope {
    points: {
        noticedBy: string;
        point: HistoryPoint;
    }[];
}
export interface Told extends Partial<Stamp> {
    hearsOlder?: true;
    point?: HistoryPoint;
    shards?: ShardPoints;
}
export {};
