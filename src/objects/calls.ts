import type { AuditPage, PullAudit } from "../core/audit.ts";
import type {
  Cell,
  CellChange,
  ChangeIdentities,
  ChangeTypes,
  DeclaredTypes,
  DirectoryReconciliation,
  KeyChange,
  KeyPage,
  KnownTypes,
  ListRevokedKeys,
  MintedKey,
  NewCell,
  RemovedCell,
  RestoreDirectory,
  RevokedKey,
  Snapshot,
  SnapshotRequest,
  UseTypes,
} from "../core/directory/messages.ts";
import type {
  AbortGrowth,
  AskGrowth,
  Confirmed,
  ConfirmCut,
  CutGrowth,
  FinishGrowth,
  Growth,
  GrowthProgress,
  GrowthStep,
  Receive,
  Received,
  StartGrowth,
} from "../core/growth/messages.ts";
import type { BeginOperation, EndOperation, EndRestore } from "../core/operations/messages.ts";
import type { Operation, OperationSet } from "../core/operations/operations.ts";
import type { IdentitySet } from "../core/identities/identities.ts";
import type { VerificationSlot, VerificationSlotRequest } from "../core/directory/verification-slots.ts";
import type * as messages from "../core/messages.ts";
import type { ReportedStatus } from "../core/status.ts";
import type * as transfers from "../core/transfer/messages.ts";
import type { DirectoryMetrics, LedgerMetrics, ShardMetrics } from "../core/metrics/messages.ts";

// The calls of each object, independent of how messages reach it. Each method takes one message and returns
// one answer.

type PeerAnswer<T> = Promise<messages.Reply<T>>;

/** An answer to the Worker, which also tells how far the object has got in its history (H2). */
export type Answer<T> = Promise<messages.Reply<T> & messages.Told>;

export interface LedgerCalls {
  begin(request: messages.BeginRequest): Answer<messages.BeginAnswer>;
  giveUp(message: messages.GiveUp): Answer<null>;
  decide(request: messages.DecideRequest): Answer<messages.PlacedLease>;
  renew(request: messages.RenewRequest): Answer<messages.Lease>;
  getLease(request: messages.LeaseRequest): Answer<messages.Lease>;
  listLeases(request: messages.ListLeasesRequest): Answer<messages.LeasePage>;
  authorize(request: messages.Authorize): Answer<null>;
  endRead(message: messages.EndRead): Answer<null>;
  prepareTransfer(request: transfers.PrepareTransfer): Answer<transfers.Transfer>;
  acceptTransfer(call: transfers.TransferCall): Answer<transfers.Transfer>;
  reportTransfer(call: transfers.ReportTransfer): Answer<transfers.Transfer>;
  decideTransfer(call: transfers.DecideTransfer): Answer<transfers.Transfer>;
  getTransfer(call: transfers.TransferCall): Answer<transfers.Transfer>;
  listTransfers(call: transfers.ListTransfers): Answer<transfers.TransferPage>;
  inquire(message: messages.Inquiry): PeerAnswer<messages.InquiryAnswer>;
  pull(message: messages.Pull): Answer<messages.PullAnswer>;
  maintain(message: messages.Maintain): Answer<messages.MaintainAnswer>;
  seenShards(message: messages.Envelope): Answer<messages.ShardPoints>;
  status(message: messages.Envelope): Answer<messages.CellStatus>;
  reportStatus(message: messages.ReportStatus): Answer<ReportedStatus>;
  reportedStatus(message: messages.CellCall): Answer<ReportedStatus | null>;
  leaseStates(message: messages.Envelope & { leases: string[] }): Answer<(messages.LeaseStatus | null)[]>;
  setState(message: messages.SetState): Answer<null>;
  startRemoval(message: messages.StartRemoval): Answer<null>;
  cancelRemoval(message: messages.CancelRemoval): Answer<null>;
  removalStep(message: messages.RemovalStep): Answer<messages.RemovalProgress>;
  revoke(message: messages.RevokeCellKey): Answer<null>;
  pullAudit(message: PullAudit): Answer<AuditPage>;
  part(message: messages.Envelope): Answer<messages.PartStatus>;
  metrics(message: messages.Envelope): Answer<LedgerMetrics>;
  scrub(message: messages.ScrubStep): Answer<messages.ScrubStatus>;
  scrubStatus(message: messages.Envelope): Answer<messages.ScrubStatus>;
  reconcile(message: messages.ReconcileLedger): Answer<messages.LedgerReconciliation>;
  knowledge(message: messages.KnowledgeRequest): PeerAnswer<messages.Knowledge>;
}

export interface ShardCalls {
  exchange(message: messages.Exchange): PeerAnswer<messages.ExchangeAnswer>;
  settle(message: messages.Settle): PeerAnswer<messages.SettleAnswer>;
  wait(message: messages.WaitForName): PeerAnswer<messages.WaitAnswer>;
  leave(message: messages.LeaveQueue): PeerAnswer<null>;
  lookup(message: messages.LookupRequest): Answer<messages.LookupAnswer>;
  report(message: messages.ReportRequest): Answer<messages.Report>;
  listChanges(message: messages.ChangesRequest): Answer<messages.ChangesPage>;
  listRecords(message: messages.ListRecordsRequest): Answer<messages.ListRecordsAnswer>;
  digestRecords(message: messages.DigestRecordsRequest): Answer<messages.DigestRecordsAnswer>;
  ping(message: messages.PingShard): Answer<messages.ShardWork>;
  listPeriods(message: messages.ListPeriods): Answer<messages.PeriodPage>;
  erasePeriods(message: messages.ErasePeriods): Answer<messages.ErasedPeriods>;
  pullAudit(message: PullAudit): Answer<AuditPage>;
  part(message: messages.Envelope): Answer<messages.PartStatus>;
  metrics(message: messages.Envelope): Answer<ShardMetrics>;
  scrub(message: messages.ScrubStep): Answer<messages.ScrubStatus>;
  scrubStatus(message: messages.Envelope): Answer<messages.ScrubStatus>;
  checkHolds(message: messages.CheckHolds): PeerAnswer<messages.HoldCheck>;
  reconcile(message: messages.ReconcileShard): Answer<messages.ShardReconciliation>;
  finishReconciliation(message: messages.FinishShard): Answer<messages.PartStatus>;
  listHolds(message: messages.ListHolds): PeerAnswer<messages.HoldPage>;
  listCellClaims(message: messages.ListCellClaims): PeerAnswer<messages.CellClaims>;
  countCellClaims(message: messages.CountCellClaims): Answer<messages.CellClaimCounts>;
  findNames(message: messages.FindNames): Answer<messages.FoundNames>;
  planTransfer(message: transfers.PlanTransfer): Answer<transfers.TransferPlan>;
  growStep(message: GrowthStep): Answer<GrowthProgress>;
  growthProgress(message: messages.Envelope): Answer<GrowthProgress>;
  receive(message: Receive): PeerAnswer<Received>;
}

export interface DirectoryCalls {
  confirm(message: messages.Confirm): PeerAnswer<Confirmed>;
  growth(message: AskGrowth): Answer<Growth | null>;
  startGrowth(message: StartGrowth): Answer<Growth>;
  cutGrowth(message: CutGrowth): Answer<Growth>;
  confirmCut(message: ConfirmCut): Answer<Growth>;
  abortGrowth(message: AbortGrowth): Answer<null>;
  finishGrowth(message: FinishGrowth): Answer<null>;
  operations(message: messages.Envelope): Answer<OperationSet>;
  beginOperation(message: BeginOperation): Answer<Operation>;
  endOperation(message: EndOperation): Answer<null>;
  endRestore(message: EndRestore): Answer<null>;
  compare(message: messages.ComparePoints): Answer<null>;
  snapshot(message: SnapshotRequest): Answer<Snapshot>;
  types(message: messages.Envelope): Answer<KnownTypes>;
  changeTypes(message: ChangeTypes): Answer<DeclaredTypes>;
  changeIdentities(message: ChangeIdentities): Answer<IdentitySet>;
  useTypes(message: UseTypes): Answer<DeclaredTypes>;
  addCell(message: NewCell): Answer<Cell>;
  changeCell(message: CellChange): Answer<Cell>;
  removeCell(message: RemovedCell): Answer<Cell>;
  recordKey(message: KeyChange): Answer<MintedKey>;
  keyToRevoke(message: messages.Envelope & { keyId: string }): Answer<MintedKey | null>;
  listKeys(message: messages.Envelope & { afterPosition: number; limit: number }): Answer<KeyPage>;
  revokeKey(message: KeyChange): Answer<MintedKey>;
  pullAudit(message: PullAudit): Answer<AuditPage>;
  revokedKeysOf(message: ListRevokedKeys): Answer<RevokedKey[]>;
  takeSlot(message: VerificationSlotRequest): Answer<VerificationSlot>;
  releaseSlot(message: VerificationSlotRequest): Answer<boolean>;
  part(message: messages.Envelope): Answer<messages.PartStatus>;
  metrics(message: messages.Envelope): Answer<DirectoryMetrics>;
  isRevoked(message: messages.Envelope & RevokedKey): Answer<boolean>;
  reconcile(message: RestoreDirectory): Answer<DirectoryReconciliation>;
}
