/** Claims as part of a cell's own transactions. */
export {
  createCell,
  Cell,
  type BulkOptions,
  type BulkProgress,
  type CellEvent,
  type CellOptions,
  type TransactionOptions,
} from "./cell.ts";
export {
  claimable,
  Claimable,
  type AttributeOptions,
  type ClaimableOptions,
  type NewRow,
  type Row,
  type Scalar,
  type ScalarColumn,
} from "./claimable.ts";
export type { ClaimTransaction } from "./claim-transaction.ts";
export type { SourceRow } from "./changes.ts";
export type { ChunkLimits } from "./chunks.ts";
export type { DeferredCounters } from "./deferred.ts";
export { BulkError, InvalidNameError, LocalCommitUnknownError, NotSavedError } from "./errors.ts";
export type { LeaseEvent } from "./leased-transaction.ts";
export type { CellDatabase, Deferred, LocalTransactions, NewLocalLease, TransactionResult } from "./local.ts";
export type { PlannedWrites } from "./planned-writes.ts";
export {
  reconcile,
  ReconcileAborted,
  reconcileDefaults,
  type Finding,
  type LocalLease,
  type LocalLeases,
  type ReconcileCounters,
  type ReconcileOptions,
  type ReconcilePorts,
  type ReconcileResult,
} from "./reconcile.ts";
export { ReconcileLoop, type ReconcileLoopOptions } from "./reconcile-loop.ts";
export { ClientLeases, type LeaseState, type RemoteLeases } from "./remote-leases.ts";
export { toValidationErrors, type FieldError, type FieldProblem } from "./validation.ts";
export { formatReport } from "./verification/format.ts";
export { VerificationLoop, type VerificationLoopOptions } from "./verification/loop.ts";
export type { VerificationProgress, VerifyOptions } from "./verification/options.ts";
export type {
  VerificationCounts,
  VerificationItem,
  VerificationReport,
  VerificationStatus,
} from "./verification/report.ts";
export { verify, VerificationAborted } from "./verification/verify.ts";
export type * from "./verification/ports.ts";
