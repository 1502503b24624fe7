/** The coordinator's API for any JavaScript: `fetch`, and nothing else. */
export { createClient, type Client, type ClientOptions } from "./client.ts";
export type { BeginLimit } from "./begin-limiter.ts";
export type { BreakerOptions } from "./breaker.ts";
export type { CallOptions, Fetch, FetchResponse } from "./connection.ts";
export type { Export } from "./export.ts";
export type { Hooks, RequestEvent, ResponseEvent, RetryEvent } from "./hooks.ts";
export type { PlacedLease } from "./lease-answers.ts";
export type { LedgerHistory, LedgerPoint } from "./ledger-history.ts";
export type {
  BeginOptions,
  DecideOptions,
  ListLeasesOptions,
  ListStaleLeasesOptions,
  StalePage,
} from "./leases.ts";
export type { RenewingOptions } from "./renewing.ts";
export { fencedWrite, type FencingToken } from "./fencing.ts";
export type { Page, Pages } from "./pages.ts";
export type { Register } from "./declared-types.ts";
export type { AuditOptions, AuditPage } from "./audit.ts";
export type { Reconciliation, ScrubStatus } from "./parts.ts";
export type { IdentitiesPlan, IdentitySet } from "./identity-sets.ts";
export type { DeclaredTypes, TypesPlan } from "./type-sets.ts";
export type {
  DigestRecordsOptions,
  ExportRecordsOptions,
  Found,
  ListRecordsOptions,
  RangeDigest,
  RecordDigests,
  RecordPage,
  SourceIdRange,
} from "./records.ts";
export type {
  Classified,
  ClassifyOptions,
  FindRouteOptions,
  Report,
  ReportOptions,
  RouteAnswer,
  ShardPositions,
  UnknownRoute,
} from "./routing.ts";
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
  type LeaseholdErrorDetails,
  type LeaseholdErrorName,
} from "./errors.ts";
export type {
  ListTransfersOptions,
  MovedScope,
  PrepareTransferOptions,
  ReportedRows,
  TransferPlanned,
  TransferStepOptions,
} from "./transfers.ts";
export type { ChangesOptions, ChangesPage, ChangesRange, FollowOptions } from "./changes.ts";
export type {
  AuditEntry,
  Batch,
  Bucket,
  BucketType,
  Cell,
  CellChange,
  CellStatus,
  Change,
  ClaimRecord,
  Conflict,
  CredentialUse,
  ForeignRecord,
  Key,
  Lease,
  Limit,
  LookupResult,
  MintedKey,
  NewCell,
  NewKey,
  OwnerCell,
  Part,
  PartReconciliation,
  Period,
  Source,
  SourceType,
  StaleLease,
  StatusReport,
  Subject,
  SubjectType,
  Transfer,
  TypeChange,
  TypeRefusal,
  TypesChange,
  TypeSet,
  VerificationSlot,
} from "./api-types.ts";
