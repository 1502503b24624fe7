import type { ConsoleSession } from "../../src/auth/console-sessions.ts";
import type { KeyPayload } from "../../src/auth/key.ts";
import type { DeclaredTypes } from "../../src/core/directory/messages.ts";
import type { Stamp } from "../../src/core/formats.ts";
import type { GrowthCopy } from "../../src/core/growth/messages.ts";
import type { StoredLoss } from "../../src/core/history.ts";
import type { IdentitySet } from "../../src/core/identities/identities.ts";
import type { ClockMark } from "../../src/core/ledger/change-times.ts";
import type { StoredExecutions } from "../../src/core/ledger/executions.ts";
import type { StoredOp } from "../../src/core/ledger/payload.ts";
import type { Applied } from "../../src/core/ledger/store.ts";
import type { TransferRecord } from "../../src/core/ledger/transfer-store.ts";
import type { SeenContradictions, StoredRemoval, Told } from "../../src/core/messages.ts";
import type { OperationSet } from "../../src/core/operations/operations.ts";
import type { StoredScrub } from "../../src/core/scrub/scrub.ts";
import type { StoredGrowth as SourceGrowth } from "../../src/core/shard/growth-source.ts";
import type { StoredAbort, StoredGrowth as TargetGrowth } from "../../src/core/shard/growth-target.ts";
import type { StoredEnd, StoredEntry } from "../../src/core/shard/hold-entries.ts";
import type { StoredExecution } from "../../src/core/shard/logged-changes.ts";
import type { StoredPoints } from "../../src/core/shard/shard-log.ts";
import type { StoredStatus } from "../../src/core/status.ts";
import type { StoredTables } from "../../src/core/tables.ts";
interface Shape<Value> {
    readonly types?: {
        value: Value;
    };
}
export declare const shapes: {
    ledger: {
        begin: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").BeginRequest, import("../../src/core/messages.ts").BeginAnswer>;
        giveUp: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").GiveUp, null>;
        decide: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").DecideRequest, import("../../src/core/messages.ts").PlacedLease>;
        renew: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").RenewRequest, import("../../src/core/messages.ts").Lease>;
        getLease: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").LeaseRequest, import("../../src/core/messages.ts").Lease>;
        listLeases: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ListLeasesRequest, import("../../src/core/messages.ts").LeasePage>;
        authorize: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Authorize, null>;
        endRead: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").EndRead, null>;
        prepareTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").PrepareTransfer, import("../../src/core/transfer/messages.ts").Transfer>;
        acceptTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").TransferCall, import("../../src/core/transfer/messages.ts").Transfer>;
        reportTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").ReportTransfer, import("../../src/core/transfer/messages.ts").Transfer>;
        decideTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").DecideTransfer, import("../../src/core/transfer/messages.ts").Transfer>;
        getTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").TransferCall, import("../../src/core/transfer/messages.ts").Transfer>;
        listTransfers: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").ListTransfers, import("../../src/core/transfer/messages.ts").TransferPage>;
        inquire: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Inquiry, import("../../src/core/messages.ts").InquiryAnswer>;
        pull: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Pull, import("../../src/core/messages.ts").PullAnswer>;
        maintain: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Maintain, import("../../src/core/messages.ts").MaintainAnswer>;
        seenShards: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").ShardPoints>;
        status: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").CellStatus>;
        reportStatus: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ReportStatus, import("../../src/core/status.ts").ReportedStatus>;
        reportedStatus: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").CellCall, import("../../src/core/status.ts").ReportedStatus | null>;
        leaseStates: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope & {
            leases: string[];
        }, (import("../../src/core/messages.ts").LeaseStatus | null)[]>;
        setState: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").SetState, null>;
        approveRemoval: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ApproveRemoval, null>;
        removalStep: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").RemovalStep, import("../../src/core/messages.ts").RemovalProgress>;
        revoke: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").RevokeCellKey, null>;
        pullAudit: import("../../src/core/method.ts").Method<import("../../src/core/audit.ts").PullAudit, import("../../src/core/audit.ts").AuditPage>;
        part: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").PartStatus>;
        metrics: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/metrics/messages.ts").LedgerMetrics>;
        scrub: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ScrubStep, import("../../src/core/messages.ts").ScrubStatus>;
        scrubStatus: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").ScrubStatus>;
        reconcile: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ReconcileLedger, import("../../src/core/messages.ts").LedgerReconciliation>;
        knowledge: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").KnowledgeRequest, import("../../src/core/messages.ts").Knowledge>;
    };
    shard: {
        exchange: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Exchange, import("../../src/core/messages.ts").ExchangeAnswer>;
        settle: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Settle, import("../../src/core/messages.ts").SettleAnswer>;
        wait: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").WaitForName, import("../../src/core/messages.ts").WaitAnswer>;
        leave: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").LeaveQueue, null>;
        lookup: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").LookupRequest, import("../../src/core/messages.ts").LookupAnswer>;
        report: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ReportRequest, import("../../src/core/messages.ts").Report>;
        listChanges: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ChangesRequest, import("../../src/core/messages.ts").ChangesPage>;
        listRecords: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ListRecordsRequest, import("../../src/core/messages.ts").ListRecordsAnswer>;
        digestRecords: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").DigestRecordsRequest, import("../../src/core/messages.ts").DigestRecordsAnswer>;
        ping: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").PingShard, import("../../src/core/messages.ts").ShardWork>;
        listPeriods: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ListPeriods, import("../../src/core/messages.ts").PeriodPage>;
        erasePeriods: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ErasePeriods, import("../../src/core/messages.ts").ErasedPeriods>;
        pullAudit: import("../../src/core/method.ts").Method<import("../../src/core/audit.ts").PullAudit, import("../../src/core/audit.ts").AuditPage>;
        part: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").PartStatus>;
        metrics: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/metrics/messages.ts").ShardMetrics>;
        scrub: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ScrubStep, import("../../src/core/messages.ts").ScrubStatus>;
        scrubStatus: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").ScrubStatus>;
        checkHolds: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").CheckHolds, import("../../src/core/messages.ts").HoldCheck>;
        reconcile: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ReconcileShard, import("../../src/core/messages.ts").ShardReconciliation>;
        finishReconciliation: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").FinishShard, import("../../src/core/messages.ts").PartStatus>;
        listHolds: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ListHolds, import("../../src/core/messages.ts").HoldPage>;
        listCellClaims: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ListCellClaims, import("../../src/core/messages.ts").CellClaims>;
        countCellClaims: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").CountCellClaims, import("../../src/core/messages.ts").CellClaimCounts>;
        findNames: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").FindNames, import("../../src/core/messages.ts").FoundNames>;
        planTransfer: import("../../src/core/method.ts").Method<import("../../src/core/transfer/messages.ts").PlanTransfer, import("../../src/core/transfer/messages.ts").TransferPlan>;
        growStep: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").GrowthStep, import("../../src/core/growth/messages.ts").GrowthProgress>;
        growthProgress: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/growth/messages.ts").GrowthProgress>;
        receive: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").Receive, import("../../src/core/growth/messages.ts").Received>;
    };
    directory: {
        confirm: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Confirm, import("../../src/core/growth/messages.ts").Confirmed>;
        growth: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").AskGrowth, import("../../src/core/growth/messages.ts").Growth | null>;
        startGrowth: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").StartGrowth, import("../../src/core/growth/messages.ts").Growth>;
        cutGrowth: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").CutGrowth, import("../../src/core/growth/messages.ts").Growth>;
        confirmCut: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").ConfirmCut, import("../../src/core/growth/messages.ts").Growth>;
        abortGrowth: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").AbortGrowth, null>;
        finishGrowth: import("../../src/core/method.ts").Method<import("../../src/core/growth/messages.ts").FinishGrowth, null>;
        operations: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, OperationSet>;
        beginOperation: import("../../src/core/method.ts").Method<import("../../src/core/operations/messages.ts").BeginOperation, import("../../src/core/operations/operations.ts").Operation>;
        endOperation: import("../../src/core/method.ts").Method<import("../../src/core/operations/messages.ts").EndOperation, null>;
        endRestore: import("../../src/core/method.ts").Method<import("../../src/core/operations/messages.ts").EndRestore, null>;
        raiseFormat: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").RaiseFormat, null>;
        compare: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").ComparePoints, null>;
        snapshot: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").SnapshotRequest, import("../../src/core/directory/messages.ts").Snapshot>;
        types: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/directory/messages.ts").KnownTypes>;
        changeTypes: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").ChangeTypes, DeclaredTypes>;
        changeIdentities: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").ChangeIdentities, IdentitySet>;
        useTypes: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").UseTypes, DeclaredTypes>;
        addCell: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").NewCell, import("../../src/core/directory/messages.ts").Cell>;
        changeCell: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").CellChange, import("../../src/core/directory/messages.ts").Cell>;
        removeCell: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").RemovedCell, import("../../src/core/directory/messages.ts").Cell>;
        recordKey: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").KeyChange, import("../../src/core/directory/messages.ts").MintedKey>;
        keyToRevoke: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope & {
            keyId: string;
        }, import("../../src/core/directory/messages.ts").MintedKey | null>;
        listKeys: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope & {
            afterPosition: number;
            limit: number;
        }, import("../../src/core/directory/messages.ts").KeyPage>;
        revokeKey: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").KeyChange, import("../../src/core/directory/messages.ts").MintedKey>;
        pullAudit: import("../../src/core/method.ts").Method<import("../../src/core/audit.ts").PullAudit, import("../../src/core/audit.ts").AuditPage>;
        revokedKeysOf: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").ListRevokedKeys, import("../../src/core/directory/messages.ts").RevokedKey[]>;
        takeSlot: import("../../src/core/method.ts").Method<import("../../src/core/directory/verification-slots.ts").VerificationSlotRequest, import("../../src/core/directory/verification-slots.ts").VerificationSlot>;
        releaseSlot: import("../../src/core/method.ts").Method<import("../../src/core/directory/verification-slots.ts").VerificationSlotRequest, boolean>;
        part: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/messages.ts").PartStatus>;
        metrics: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope, import("../../src/core/metrics/messages.ts").DirectoryMetrics>;
        isRevoked: import("../../src/core/method.ts").Method<import("../../src/core/messages.ts").Envelope & import("../../src/core/directory/messages.ts").RevokedKey, boolean>;
        reconcile: import("../../src/core/method.ts").Method<import("../../src/core/directory/messages.ts").RestoreDirectory, import("../../src/core/directory/messages.ts").DirectoryReconciliation>;
    };
    everyMessage: {
        stamp: Shape<Stamp>;
    };
    everyAnswer: {
        told: Shape<Told>;
    };
    signed: {
        key: Shape<KeyPayload>;
        consoleSession: Shape<ConsoleSession>;
    };
    storedByParts: {
        tables: Shape<StoredTables>;
        loss: Shape<StoredLoss>;
        scrub: Shape<StoredScrub>;
    };
    storedByLedgers: {
        op: Shape<StoredOp>;
        executions: Shape<StoredExecutions>;
        applied: Shape<Applied>;
        clockMark: Shape<ClockMark>;
        contradictions: Shape<SeenContradictions>;
        removal: Shape<StoredRemoval>;
        status: Shape<StoredStatus>;
        transfer: Shape<TransferRecord>;
    };
    storedByShards: {
        holdEntry: Shape<StoredEntry>;
        holdEnd: Shape<StoredEnd>;
        execution: Shape<StoredExecution>;
        ledgers: Shape<StoredPoints>;
        growthAway: Shape<SourceGrowth>;
        growthHere: Shape<TargetGrowth>;
        abortedGrowth: Shape<StoredAbort>;
    };
    storedByDirectory: {
        types: Shape<DeclaredTypes>;
        identities: Shape<IdentitySet>;
        operations: Shape<OperationSet>;
        growth: Shape<GrowthCopy>;
    };
};
export {};
