/**
 * Every limit of the service, in one place (M6). The named variable overrides a limit within [min, max]. The
 * limits are listed in docs/reference/limits.md and by `GET /v1/limits`. Where the origin of a number is not
 * obvious, a comment gives it.
 */
interface Limit {
  default: number;
  min: number;
  max: number;
  unit: "ops" | "bytes" | "levels" | "items" | "ms" | "s" | "calls";
  about: string;
}

export const limitTable = {
  batchOps: {
    default: 1_000,
    min: 1,
    max: 5_000,
    unit: "ops",
    about: "creates, destroys and replaces in one begin",
  },
  bodyBytes: { default: 1_048_576, min: 1_024, max: 8_388_608, unit: "bytes", about: "a request body" },
  // A connection with an unfinished body takes up memory and, under `npm start`, a file descriptor. The
  // largest body that is allowed by default takes 10 s at 0.8 Mbit/s.
  bodyReadMs: {
    default: 10_000,
    min: 50,
    max: 60_000,
    unit: "ms",
    about: "the arrival of a request body",
  },
  // SQLite in a Durable Object limits a row to 2 MB, and the other columns of the lease's row need part of
  // that.
  leaseBytes: {
    default: 1_800_000,
    min: 1_024,
    max: 1_900_000,
    unit: "bytes",
    about: "a lease's stored payload",
  },
  jsonDepth: { default: 8, min: 5, max: 64, unit: "levels", about: "nesting of a request body" },
  valueBytes: {
    default: 1_024,
    min: 16,
    max: 1_024,
    unit: "bytes",
    about: "a bucket value in UTF-8, typed and canonical",
  },
  idBytes: { default: 128, min: 1, max: 128, unit: "bytes", about: "a subject or source id in UTF-8" },
  // A shard reads all of them in one transaction: 20,000 take about 100 ms.
  transferClaims: {
    default: 20_000,
    min: 1,
    max: 50_000,
    unit: "items",
    about: "claims of one scope on one shard that a transfer moves",
  },
  openTransfers: {
    default: 10,
    min: 1,
    max: 100,
    unit: "items",
    about: "transfers from one cell that are prepared",
  },
  keptTransfers: {
    default: 1_000,
    min: 10,
    max: 10_000,
    unit: "items",
    about: "transfers from one cell that the ledger of another remembers, besides those that can be undone",
  },
  transferVerifiedS: {
    default: 900,
    min: 10,
    max: 86_400,
    unit: "s",
    about: "the age of the reports of both cells when a transfer is cut",
  },
  switchBackS: {
    default: 604_800,
    min: 60,
    max: 2_592_000,
    unit: "s",
    about: "the time after a cut in which it may be undone by a switch-back",
  },
  reasonBytes: { default: 500, min: 1, max: 4_096, unit: "bytes", about: "an operator's reason" },
  pageItems: {
    default: 100,
    min: 1,
    max: 5_000,
    unit: "items",
    about: "a page when page_size is not given",
  },
  maxPageItems: {
    default: 1_000,
    min: 1,
    max: 5_000,
    unit: "items",
    about: "the largest page; a larger page_size is clamped",
  },
  // The platform limits the calls of a Worker per request. A page of 1,000 records takes one call per shard
  // and one call to the ledger.
  exportRecords: {
    default: 50_000,
    min: 1,
    max: 1_000_000,
    unit: "items",
    about: "records in one answer of an export; the caller continues with another call",
  },
  lookupBuckets: { default: 100, min: 1, max: 1_000, unit: "items", about: "buckets in one lookup" },
  // Without reports, this is how old an answer in a router's cache can be.
  routeMaxAgeS: {
    default: 5,
    min: 0,
    max: 60,
    unit: "s",
    about: "how long a cache may keep an answer to a router; 0 means not at all",
  },
  digestRanges: {
    default: 256,
    min: 1,
    max: 1_000,
    unit: "items",
    about: "ranges in one call for digests",
  },
  concurrentBegins: {
    default: 300,
    min: 1,
    max: 10_000,
    unit: "calls",
    about: "begins of one cell at a time",
  },
  // One run of a verification makes one read at a time.
  concurrentReads: {
    default: 32,
    min: 1,
    max: 10_000,
    unit: "calls",
    about: "listings, digests and export pages of one cell at a time",
  },
  concurrentReadsPerKey: {
    default: 16,
    min: 1,
    max: 10_000,
    unit: "calls",
    about: "the part of them that one key may have",
  },
  // An object has 128 MB of memory for everything, and a payload takes several times its stored size while it
  // is processed.
  beginBytes: {
    default: 16_000_000,
    min: 1_024,
    max: 64_000_000,
    unit: "bytes",
    about: "stored payload of one cell's begins at a time, and of the decisions that its ledger sends",
  },
  outstandingLeases: {
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: "items",
    about: "granted leases of one cell that are not decided",
  },
  // They are in the memory of the shard, some 300 bytes each, and a start reads all in 0.3 s. A name of 128
  // characters or more counts as several. A cell may have half of them, enough for the largest batch.
  heldNames: {
    default: 100_000,
    min: 40_000,
    max: 200_000,
    unit: "items",
    about: "names that open leases of all cells hold on a shard; those of one cell may be half of it",
  },
  fences: {
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: "items",
    about: "remembered rollbacks of one cell for leases that it never began",
  },
  // SQLite in a Durable Object is limited to 10 GB.
  ledgerBytes: {
    default: 9_000_000_000,
    min: 49_152,
    max: 9_000_000_000,
    unit: "bytes",
    about: "a cell's ledger; begins are refused while open leases might not fit",
  },
  // The rest of the 10 GB is for holds that become claims: a claim takes up to twice as much as its hold.
  shardBytes: {
    default: 8_000_000_000,
    min: 49_152,
    max: 8_000_000_000,
    unit: "bytes",
    about: "a shard; begins that take or change names on a larger one are refused",
  },
  beginDeadlineMs: {
    default: 5_000,
    min: 50,
    max: 60_000,
    unit: "ms",
    about: "a begin, contention included",
  },
  // Longer than the local transaction of most callers, and shorter than the timeout of most proxies.
  beginWaitMs: {
    default: 30_000,
    min: 0,
    max: 60_000,
    unit: "ms",
    about: "the largest `wait_ms`: how long a begin may wait for leased names, besides its deadline",
  },
  // A third of `concurrentBegins`, so that begins that wait leave room for those that do not.
  waitingBegins: {
    default: 100,
    min: 0,
    max: 10_000,
    unit: "calls",
    about: "begins of one cell that wait for a leased name at a time",
  },
  nameQueue: { default: 100, min: 1, max: 10_000, unit: "calls", about: "begins that wait for one name" },
  // A place takes less than 1 KB, with its message.
  shardQueue: {
    default: 5_000,
    min: 1,
    max: 100_000,
    unit: "calls",
    about: "begins that wait for the names of one shard",
  },
  // Several message times. A begin asks the shards before this one first.
  offerMs: {
    default: 1_000,
    min: 10,
    max: 30_000,
    unit: "ms",
    about: "how long a name that got free is kept for the begin to which it is offered",
  },
  commitDeadlineMs: { default: 10_000, min: 50, max: 60_000, unit: "ms", about: "a commit or rollback" },
  // Shorter than the begin deadline, so that after one lost answer there is time to release the other shards.
  exchangeTimeoutMs: { default: 3_000, min: 20, max: 30_000, unit: "ms", about: "one message to a shard" },
  // Longer than a busy caller pauses between its commit and its next begin. Until the decision arrives, a
  // lookup of the name costs one message more. Where begins come often, it waits longer (N1).
  decisionWaitMs: {
    default: 5,
    min: 0,
    max: 1_000,
    unit: "ms",
    about:
      "how long a decision waits for a begin whose message to the shard it can share, if begins are rare",
  },
  inquiryTimeoutMs: {
    default: 1_000,
    min: 20,
    max: 30_000,
    unit: "ms",
    about: "one question to a ledger or to the directory",
  },
  // The platform's limit of 6 connections at a time does not list calls to objects.
  fanOut: {
    default: 16,
    min: 1,
    max: 256,
    unit: "calls",
    about: "messages that one object or request sends at a time",
  },
  // The platform limits a message to 32 MiB. An op with the longest names and ids takes up to 3 KB.
  messageOps: {
    default: 2_000,
    min: 1,
    max: 5_000,
    unit: "ops",
    about: "ops in one message to a shard, unless one lease has more",
  },
  // 2,000 rows of an index take about a millisecond. Reads share the time of a shard with begins and commits.
  scanRows: {
    default: 2_000,
    min: 1,
    max: 20_000,
    unit: "items",
    about: "claims, and holds, that a shard reads for one message",
  },
  scrubEveryS: {
    default: 86_400,
    min: 0,
    max: 31_536_000,
    unit: "s",
    about: "the least time from one pass of the scrub to the next; 0 means that only operators scrub",
  },
  sweepAfterMs: {
    default: 5_000,
    min: 50,
    max: 600_000,
    unit: "ms",
    about: "age at which a shard asks about a hold",
  },
  maxBackoffMs: {
    default: 60_000,
    min: 100,
    max: 3_600_000,
    unit: "ms",
    about: "the longest pause between two tries of unfinished work",
  },
  // Runs of the cron, each a minute after the one before, must see that a lease is decided.
  outcomeRetentionS: {
    default: 86_400,
    min: 600,
    max: 2_592_000,
    unit: "s",
    about: "how long a decided lease answers replays",
  },
  // A caller gives up after seconds, and an HTTP connection or proxy after minutes.
  lateBeginS: {
    default: 3_600,
    min: 1,
    max: 86_400,
    unit: "s",
    about: "how long a rollback of a lease that was never begun is remembered; how late a begin may arrive",
  },
  staleS: {
    default: 600,
    min: 1,
    max: 604_800,
    unit: "s",
    about: "time since its grant or last renewal after which a granted lease is listed as stale",
  },
  auditRetentionS: {
    default: 31_536_000,
    min: 86_400,
    max: 315_360_000,
    unit: "s",
    about: "how long the projection keeps audit entries",
  },
  // An entry takes at most some 20 KB, and usually less than one.
  auditEntries: {
    default: 10_000,
    min: 1,
    max: 100_000,
    unit: "items",
    about: "audit entries that an object keeps until they are copied; then it refuses changes of operators",
  },
  nameHistoryS: {
    default: 7_776_000,
    min: 60,
    max: 315_360_000,
    unit: "s",
    about: "how long a shard keeps a claim that has ended; up to a 64th part longer",
  },
  // A row takes some 200 bytes, and at most 3 KB.
  nameHistoryRows: {
    default: 1_000_000,
    min: 64,
    max: 2_000_000,
    unit: "items",
    about: "claims that have ended, on one shard; above it, the oldest are dropped earlier",
  },
  // D1 allows a run of the cron 1,000 statements, and each endpoint reserves 12 of them.
  webhooks: { default: 10, min: 1, max: 16, unit: "items", about: "endpoints of webhooks" },
  webhookQueue: {
    default: 1_000,
    min: 1,
    max: 10_000,
    unit: "items",
    about: "messages that wait for one endpoint; further events wait until there is room",
  },
  webhookTimeoutMs: {
    default: 5_000,
    min: 50,
    max: 10_000,
    unit: "ms",
    about: "one attempt to deliver a message to an endpoint",
  },
  webhookRetryS: {
    default: 86_400,
    min: 1,
    max: 604_800,
    unit: "s",
    about: "how long a message to an endpoint is tried again before it is given up",
  },
  keyLifetimeS: {
    default: 34_560_000,
    min: 60,
    max: 34_560_000,
    unit: "s",
    about: "the longest life of a key",
  },
  keyCache: {
    default: 10_000,
    min: 1,
    max: 100_000,
    unit: "items",
    about: "checked keys that one isolate remembers",
  },
  directoryCacheMs: {
    default: 30_000,
    min: 0,
    max: 30_000,
    unit: "ms",
    about: "age of an isolate's copy of the directory",
  },
  pullRows: {
    default: 500,
    min: 1,
    max: 5_000,
    unit: "items",
    about: "leases in one page of the cron's pull",
  },
  verificationSlots: {
    default: 2,
    min: 1,
    max: 1_000,
    unit: "items",
    about: "cells that are verified at a time",
  },
  verificationSlotMs: {
    default: 60_000,
    min: 1_000,
    max: 3_600_000,
    unit: "ms",
    about: "how long a verification slot lasts after it was taken or renewed",
  },
  // A run that loses its slot has saved its cursor, and continues in its next turn.
  verificationTurnMs: {
    default: 1_800_000,
    min: 1_000,
    max: 86_400_000,
    unit: "ms",
    about: "how long a run may renew its verification slot while other cells wait for one",
  },
  // A cell reports once a minute, and after each verification. Its processes share this limit.
  statusEveryMs: {
    default: 5_000,
    min: 0,
    max: 600_000,
    unit: "ms",
    about: "the shortest time between two reports of a cell's status",
  },
  maxRevokedKeys: {
    default: 10_000,
    min: 1,
    max: 100_000,
    unit: "items",
    about: "revoked keys that have not expired yet; more are remembered by the time of their expiry",
  },
  maxKeys: {
    default: 100_000,
    min: 1,
    max: 1_000_000,
    unit: "items",
    about: "minted and revoked keys that the directory describes; it forgets expired ones to make room",
  },
  // A run of the cron calls each ledger twice, and the platform limits the calls of an invocation to 10,000.
  // Each isolate reads all cells every 30 s, in one message.
  maxCells: { default: 1_000, min: 1, max: 1_000, unit: "items", about: "cells that are not removed" },
  maxCellIds: {
    default: 2_000,
    min: 1,
    max: 4_000,
    unit: "items",
    about: "cells that were ever registered, removed ones included",
  },
  // A cell has some 90 series, and a shard some 35. Each scrape calls the ledger of each of these cells.
  metricsCells: {
    default: 100,
    min: 1,
    max: 1_000,
    unit: "items",
    about: "cells in one answer with metrics",
  },
  // A traced begin and commit of one name has some 10 spans, of 500 bytes each.
  callerTracesPerS: {
    default: 10,
    min: 0,
    max: 10_000,
    unit: "calls",
    about: "calls in a second that an isolate traces because their callers trace them",
  },
} as const satisfies Record<string, Limit>;

export type LimitName = keyof typeof limitTable;
export type Limits = Readonly<Record<LimitName, number>>;

export const limitNames = Object.keys(limitTable) as LimitName[];

/** The limit's name in the API: `beginDeadlineMs` → `begin_deadline_ms`. */
export const apiLimitName = (name: LimitName): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The limit's variable: `beginDeadlineMs` → `LEASEHOLD_BEGIN_DEADLINE_MS`. */
export const limitVariable = (name: LimitName): string => `LEASEHOLD_${apiLimitName(name).toUpperCase()}`;

export const defaultLimits: Limits = Object.fromEntries(
  limitNames.map((name) => [name, limitTable[name].default]),
) as Limits;

/**
 * Reads the limits from the variables, with defaults for those that are not set.
 *
 * @throws an error that names the variable if its value is not a whole number in range
 */
export function readLimits(variables: Readonly<Record<string, unknown>>): Limits {
  const limits: Record<string, number> = { ...defaultLimits };
  for (const name of limitNames) {
    const given = variables[limitVariable(name)];
    if (given === undefined || given === "") continue;
    const { min, max, unit } = limitTable[name];
    const value = typeof given === "string" && /^\d+$/.test(given) ? Number(given) : given;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
      throw new Error(`${limitVariable(name)} must be a whole number of ${unit} from ${min} to ${max}`);
    }
    limits[name] = value;
  }
  return limits as Limits;
}
