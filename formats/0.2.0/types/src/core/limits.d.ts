export declare const limitTable: {
    readonly batchOps: {
        readonly default: 1000;
        readonly min: 1;
        readonly max: 5000;
        readonly unit: "ops";
        readonly about: "creates, destroys and replaces in one begin";
    };
    readonly bodyBytes: {
        readonly default: 1048576;
        readonly min: 1024;
        readonly max: 8388608;
        readonly unit: "bytes";
        readonly about: "a request body";
    };
    readonly bodyReadMs: {
        readonly default: 10000;
        readonly min: 50;
        readonly max: 60000;
        readonly unit: "ms";
        readonly about: "the arrival of a request body";
    };
    readonly leaseBytes: {
        readonly default: 1800000;
        readonly min: 1024;
        readonly max: 1900000;
        readonly unit: "bytes";
        readonly about: "a lease's stored payload";
    };
    readonly jsonDepth: {
        readonly default: 8;
        readonly min: 5;
        readonly max: 64;
        readonly unit: "levels";
        readonly about: "nesting of a request body";
    };
    readonly valueBytes: {
        readonly default: 1024;
        readonly min: 16;
        readonly max: 1024;
        readonly unit: "bytes";
        readonly about: "a bucket value in UTF-8, typed and canonical";
    };
    readonly idBytes: {
        readonly default: 128;
        readonly min: 1;
        readonly max: 128;
        readonly unit: "bytes";
        readonly about: "a subject or source id in UTF-8";
    };
    readonly transferClaims: {
        readonly default: 20000;
        readonly min: 1;
        readonly max: 50000;
        readonly unit: "items";
        readonly about: "claims of one scope on one shard that a transfer moves";
    };
    readonly openTransfers: {
        readonly default: 10;
        readonly min: 1;
        readonly max: 100;
        readonly unit: "items";
        readonly about: "transfers from one cell that are prepared";
    };
    readonly keptTransfers: {
        readonly default: 1000;
        readonly min: 10;
        readonly max: 10000;
        readonly unit: "items";
        readonly about: "transfers from one cell that the ledger of another remembers, besides those that can be undone";
    };
    readonly transferVerifiedS: {
        readonly default: 900;
        readonly min: 10;
        readonly max: 86400;
        readonly unit: "s";
        readonly about: "the age of the reports of both cells when a transfer is cut";
    };
    readonly switchBackS: {
        readonly default: 604800;
        readonly min: 60;
        readonly max: 2592000;
        readonly unit: "s";
        readonly about: "the time after a cut in which it may be undone by a switch-back";
    };
    readonly reasonBytes: {
        readonly default: 500;
        readonly min: 1;
        readonly max: 4096;
        readonly unit: "bytes";
        readonly about: "an operator's reason";
    };
    readonly pageItems: {
        readonly default: 100;
        readonly min: 1;
        readonly max: 5000;
        readonly unit: "items";
        readonly about: "a page when page_size is not given";
    };
    readonly maxPageItems: {
        readonly default: 1000;
        readonly min: 1;
        readonly max: 5000;
        readonly unit: "items";
        readonly about: "the largest page; a larger page_size is clamped";
    };
    readonly exportRecords: {
        readonly default: 50000;
        readonly min: 1;
        readonly max: 1000000;
        readonly unit: "items";
        readonly about: "records in one answer of an export; the caller continues with another call";
    };
    readonly lookupBuckets: {
        readonly default: 100;
        readonly min: 1;
        readonly max: 1000;
        readonly unit: "items";
        readonly about: "buckets in one lookup";
    };
    readonly routeMaxAgeS: {
        readonly default: 5;
        readonly min: 0;
        readonly max: 60;
        readonly unit: "s";
        readonly about: "how long a cache may keep an answer to a router; 0 means not at all";
    };
    readonly digestRanges: {
        readonly default: 256;
        readonly min: 1;
        readonly max: 1000;
        readonly unit: "items";
        readonly about: "ranges in one call for digests";
    };
    readonly concurrentBegins: {
        readonly default: 300;
        readonly min: 1;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "begins of one cell at a time";
    };
    readonly concurrentReads: {
        readonly default: 32;
        readonly min: 1;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "listings, digests and export pages of one cell at a time";
    };
    readonly concurrentReadsPerKey: {
        readonly default: 16;
        readonly min: 1;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "the part of them that one key may have";
    };
    readonly beginBytes: {
        readonly default: 16000000;
        readonly min: 1024;
        readonly max: 64000000;
        readonly unit: "bytes";
        readonly about: "stored payload of one cell's begins at a time, and of the decisions that its ledger sends";
    };
    readonly outstandingLeases: {
        readonly default: 10000;
        readonly min: 1;
        readonly max: 1000000;
        readonly unit: "items";
        readonly about: "granted leases of one cell that are not decided";
    };
    readonly heldNames: {
        readonly default: 100000;
        readonly min: 40000;
        readonly max: 200000;
        readonly unit: "items";
        readonly about: "names that open leases of all cells hold on a shard; those of one cell may be half of it";
    };
    readonly fences: {
        readonly default: 10000;
        readonly min: 1;
        readonly max: 1000000;
        readonly unit: "items";
        readonly about: "remembered rollbacks of one cell for leases that it never began";
    };
    readonly ledgerBytes: {
        readonly default: 9000000000;
        readonly min: 49152;
        readonly max: 9000000000;
        readonly unit: "bytes";
        readonly about: "a cell's ledger; begins are refused while open leases might not fit";
    };
    readonly shardBytes: {
        readonly default: 8000000000;
        readonly min: 49152;
        readonly max: 8000000000;
        readonly unit: "bytes";
        readonly about: "a shard; begins that take or change names on a larger one are refused";
    };
    readonly beginDeadlineMs: {
        readonly default: 5000;
        readonly min: 50;
        readonly max: 60000;
        readonly unit: "ms";
        readonly about: "a begin, contention included";
    };
    readonly beginWaitMs: {
        readonly default: 30000;
        readonly min: 0;
        readonly max: 60000;
        readonly unit: "ms";
        readonly about: "the largest `wait_ms`: how long a begin may wait for leased names, besides its deadline";
    };
    readonly waitingBegins: {
        readonly default: 100;
        readonly min: 0;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "begins of one cell that wait for a leased name at a time";
    };
    readonly nameQueue: {
        readonly default: 100;
        readonly min: 1;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "begins that wait for one name";
    };
    readonly shardQueue: {
        readonly default: 5000;
        readonly min: 1;
        readonly max: 100000;
        readonly unit: "calls";
        readonly about: "begins that wait for the names of one shard";
    };
    readonly offerMs: {
        readonly default: 1000;
        readonly min: 10;
        readonly max: 30000;
        readonly unit: "ms";
        readonly about: "how long a name that got free is kept for the begin to which it is offered";
    };
    readonly commitDeadlineMs: {
        readonly default: 10000;
        readonly min: 50;
        readonly max: 60000;
        readonly unit: "ms";
        readonly about: "a commit or rollback";
    };
    readonly exchangeTimeoutMs: {
        readonly default: 3000;
        readonly min: 20;
        readonly max: 30000;
        readonly unit: "ms";
        readonly about: "one message to a shard";
    };
    readonly decisionWaitMs: {
        readonly default: 5;
        readonly min: 0;
        readonly max: 1000;
        readonly unit: "ms";
        readonly about: "how long a decision waits for a begin whose message to the shard it can share, if begins are rare";
    };
    readonly inquiryTimeoutMs: {
        readonly default: 1000;
        readonly min: 20;
        readonly max: 30000;
        readonly unit: "ms";
        readonly about: "one question to a ledger or to the directory";
    };
    readonly fanOut: {
        readonly default: 16;
        readonly min: 1;
        readonly max: 256;
        readonly unit: "calls";
        readonly about: "messages that one object or request sends at a time";
    };
    readonly messageOps: {
        readonly default: 2000;
        readonly min: 1;
        readonly max: 5000;
        readonly unit: "ops";
        readonly about: "ops in one message to a shard, unless one lease has more";
    };
    readonly scanRows: {
        readonly default: 2000;
        readonly min: 1;
        readonly max: 20000;
        readonly unit: "items";
        readonly about: "claims, and holds, that a shard reads for one message";
    };
    readonly scrubEveryS: {
        readonly default: 86400;
        readonly min: 0;
        readonly max: 31536000;
        readonly unit: "s";
        readonly about: "the least time from one pass of the scrub to the next; 0 means that only operators scrub";
    };
    readonly sweepAfterMs: {
        readonly default: 5000;
        readonly min: 50;
        readonly max: 600000;
        readonly unit: "ms";
        readonly about: "age at which a shard asks about a hold";
    };
    readonly maxBackoffMs: {
        readonly default: 60000;
        readonly min: 100;
        readonly max: 3600000;
        readonly unit: "ms";
        readonly about: "the longest pause between two tries of unfinished work";
    };
    readonly outcomeRetentionS: {
        readonly default: 86400;
        readonly min: 600;
        readonly max: 2592000;
        readonly unit: "s";
        readonly about: "how long a decided lease answers replays";
    };
    readonly lateBeginS: {
        readonly default: 3600;
        readonly min: 1;
        readonly max: 86400;
        readonly unit: "s";
        readonly about: "how long a rollback of a lease that was never begun is remembered; how late a begin may arrive";
    };
    readonly staleS: {
        readonly default: 600;
        readonly min: 1;
        readonly max: 604800;
        readonly unit: "s";
        readonly about: "time since its grant or last renewal after which a granted lease is listed as stale";
    };
    readonly auditRetentionS: {
        readonly default: 31536000;
        readonly min: 86400;
        readonly max: 315360000;
        readonly unit: "s";
        readonly about: "how long the projection keeps audit entries";
    };
    readonly auditEntries: {
        readonly default: 10000;
        readonly min: 1;
        readonly max: 100000;
        readonly unit: "items";
        readonly about: "audit entries that an object keeps until they are copied; then it refuses changes of operators";
    };
    readonly nameHistoryS: {
        readonly default: 7776000;
        readonly min: 60;
        readonly max: 315360000;
        readonly unit: "s";
        readonly about: "how long a shard keeps a claim that has ended; up to a 64th part longer";
    };
    readonly nameHistoryRows: {
        readonly default: 1000000;
        readonly min: 64;
        readonly max: 2000000;
        readonly unit: "items";
        readonly about: "claims that have ended, on one shard; above it, the oldest are dropped earlier";
    };
    readonly webhooks: {
        readonly default: 10;
        readonly min: 1;
        readonly max: 16;
        readonly unit: "items";
        readonly about: "endpoints of webhooks";
    };
    readonly webhookQueue: {
        readonly default: 1000;
        readonly min: 1;
        readonly max: 10000;
        readonly unit: "items";
        readonly about: "messages that wait for one endpoint; further events wait until there is room";
    };
    readonly webhookTimeoutMs: {
        readonly default: 5000;
        readonly min: 50;
        readonly max: 10000;
        readonly unit: "ms";
        readonly about: "one attempt to deliver a message to an endpoint";
    };
    readonly webhookRetryS: {
        readonly default: 86400;
        readonly min: 1;
        readonly max: 604800;
        readonly unit: "s";
        readonly about: "how long a message to an endpoint is tried again before it is given up";
    };
    readonly keyLifetimeS: {
        readonly default: 34560000;
        readonly min: 60;
        readonly max: 34560000;
        readonly unit: "s";
        readonly about: "the longest life of a key";
    };
    readonly keyCache: {
        readonly default: 10000;
        readonly min: 1;
        readonly max: 100000;
        readonly unit: "items";
        readonly about: "checked keys that one isolate remembers";
    };
    readonly directoryCacheMs: {
        readonly default: 30000;
        readonly min: 0;
        readonly max: 30000;
        readonly unit: "ms";
        readonly about: "age of an isolate's copy of the directory";
    };
    readonly pullRows: {
        readonly default: 500;
        readonly min: 1;
        readonly max: 5000;
        readonly unit: "items";
        readonly about: "leases in one page of the cron's pull";
    };
    readonly verificationSlots: {
        readonly default: 2;
        readonly min: 1;
        readonly max: 1000;
        readonly unit: "items";
        readonly about: "cells that are verified at a time";
    };
    readonly verificationSlotMs: {
        readonly default: 60000;
        readonly min: 1000;
        readonly max: 3600000;
        readonly unit: "ms";
        readonly about: "how long a verification slot lasts after it was taken or renewed";
    };
    readonly verificationTurnMs: {
        readonly default: 1800000;
        readonly min: 1000;
        readonly max: 86400000;
        readonly unit: "ms";
        readonly about: "how long a run may renew its verification slot while other cells wait for one";
    };
    readonly statusEveryMs: {
        readonly default: 5000;
        readonly min: 0;
        readonly max: 600000;
        readonly unit: "ms";
        readonly about: "the shortest time between two reports of a cell's status";
    };
    readonly maxRevokedKeys: {
        readonly default: 10000;
        readonly min: 1;
        readonly max: 100000;
        readonly unit: "items";
        readonly about: "revoked keys that have not expired yet; more are remembered by the time of their expiry";
    };
    readonly maxKeys: {
        readonly default: 100000;
        readonly min: 1;
        readonly max: 1000000;
        readonly unit: "items";
        readonly about: "minted and revoked keys that the directory describes; it forgets expired ones to make room";
    };
    readonly maxCells: {
        readonly default: 1000;
        readonly min: 1;
        readonly max: 1000;
        readonly unit: "items";
        readonly about: "cells that are not removed";
    };
    readonly maxCellIds: {
        readonly default: 2000;
        readonly min: 1;
        readonly max: 4000;
        readonly unit: "items";
        readonly about: "cells that were ever registered, removed ones included";
    };
    readonly metricsCells: {
        readonly default: 100;
        readonly min: 1;
        readonly max: 1000;
        readonly unit: "items";
        readonly about: "cells in one answer with metrics";
    };
    readonly callerTracesPerS: {
        readonly default: 10;
        readonly min: 0;
        readonly max: 10000;
        readonly unit: "calls";
        readonly about: "calls in a second that an isolate traces because their callers trace them";
    };
};
export type LimitName = keyof typeof limitTable;
export type Limits = Readonly<Record<LimitName, number>>;
export declare const limitNames: LimitName[];
export declare const apiLimitName: (name: LimitName) => string;
export declare const limitVariable: (name: LimitName) => string;
export declare const defaultLimits: Limits;
export declare function readLimits(variables: Readonly<Record<string, unknown>>): Limits;
