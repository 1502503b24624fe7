/** Claims as part of a cell's own transactions. */
export type { Answer, Refused, Unknown } from "../client/answer.ts";
// Calls of a cell throw the client's errors too.
export {
  AlreadyClaimedError,
  CancelledError,
  CellDrainingError,
  CellFrozenError,
  ChangesPrunedError,
  ClaimLeasedError,
  ClaimMismatchError,
  FailedPreconditionError,
  InvalidArgumentError,
  isLeaseholdError,
  LeaseCommittedError,
  LeaseholdError,
  LeaseIdReusedError,
  LeaseRolledBackError,
  NotFoundError,
  NotOwnerError,
  PermissionDeniedError,
  ReportPrunedError,
  ResourceExhaustedError,
  StaleEpochError,
  TimeoutError,
  UnauthenticatedError,
  UnavailableError,
  type KnownErrorCode,
  type LeaseholdErrorCode,
  type LeaseholdErrorName,
} from "../client/errors.ts";
export type { BulkInsertOptions, BulkOptions, BulkProgress } from "./bulk-changes.ts";
export { createCell, type Cell, type CellEvent, type CellOptions, type PreflightOptions } from "./cell.ts";
export {
  claimable,
  type AttributeOptions,
  type Claimable,
  type ClaimableOptions,
  type Scalar,
  type ScalarColumn,
  type TimeColumn,
} from "./claimable.ts";
export type { ClaimTransaction, TransactionOptions } from "./claim-transaction.ts";
export type { SourceRow } from "./changes.ts";
export type { ChunkLimits } from "./chunks.ts";
export type { DeferredCounters } from "./deferred.ts";
export {
  BulkError,
  InvalidNameError,
  LocalCommitUnknownError,
  NotInstalledError,
  NotSavedError,
  type FieldError,
  type FieldProblem,
  type Origin,
  type RefusedInput,
} from "./errors.ts";
export type { TypesDocument } from "../../common/types/document.ts";
export type { LeaseEvent } from "./leased-transaction.ts";
export type {
  CellDatabase,
  DatabaseProblem,
  Deferred,
  LocalTransactions,
  NewLocalLease,
  Selection,
  TransactionResult,
} from "./local.ts";
export {
  misdirected,
  misdirectedResponse,
  type MisdirectedAnswer,
  type MisdirectedOptions,
  type RequestHeaders,
} from "./misdirected.ts";
export type { PlannedWrites } from "./planned-writes.ts";
export {
  reconcile,
  ReconcileAborted,
  type Finding,
  type LocalLease,
  type LocalLeases,
  type ReconcileCounters,
  type ReconcileOptions,
  type ReconcilePorts,
  type ReconcileResult,
} from "./reconcile.ts";
export type { ReconcileLoop, ReconcileLoopOptions } from "./reconcile-loop.ts";
export {
  ClientLeases,
  type LeaseAnswer,
  type LeaseState,
  type RemoteLeasePage,
  type RemoteLeases,
  type RemotePageRequest,
} from "./remote-leases.ts";
export { mergePositions, positionCookie, type Positions } from "../router/positions.ts";
export type { ScopeDigest } from "./verification/row-names.ts";
export type { LedgerHistoryTable } from "./saved-history.ts";
export type { AnyRow, AnyTable, NamedTable, NewRow, Row, RowUpdate, Where } from "./table.ts";
export { toValidationErrors } from "./validation.ts";
export { formatReport, type FormatOptions } from "./verification/format.ts";
export {
  VerificationAborted,
  type VerificationLoop,
  type VerificationLoopOptions,
} from "./verification/loop.ts";
export type { VerificationProgress, VerifyOptions } from "./verification/options.ts";
export type {
  IdRange,
  InspectedRow,
  QueuedRow,
  QueuePage,
  VerificationDatabase,
} from "./verification/ports.ts";
export {
  isDecision,
  type VerificationCounts,
  type VerificationItem,
  type VerificationReport,
  type VerificationStatus,
} from "./verification/report.ts";
