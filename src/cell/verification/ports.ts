import type { Batch, Bucket, Conflict, Record as ClaimRecord, Source } from "../../client/wire.ts";
import type { Limits } from "../../core/limits.ts";
import type { SourceRow } from "../changes.ts";
import type { AnyRow, Claimable, RowClaim } from "../claimable.ts";

export interface VerifiedClaim extends RowClaim {
  /** What the coordinator would have against it. */
  fault?: string | undefined;
}

/** A row of a claimable table, as a verification sees it. */
export interface VerifiedRow {
  id: string;
  /** Of the columns that are verified. */
  claims: readonly VerifiedClaim[];
  /** Since it was last changed, by the database's clock. Undefined: the table does not tell. */
  ageMs: number | undefined;
}

/** Source ids after `after` ("" for the first) and up to `upTo` (undefined: to the end), in source order. */
export interface IdRange {
  after: string;
  upTo: string | undefined;
}

/** A claimable table with the columns whose switch is on. */
export interface VerifiedTable {
  name: string;
  source: Source["type"];
  /** Those that can be told from all others of the table. */
  bucketTypes: readonly Bucket["type"][];
  /** All columns are switched on. */
  hasEveryAttribute: boolean;
  count(range: IdRange): Promise<number>;
  /** Rows of a range, in source order. */
  page(range: IdRange & { limit: number }): Promise<VerifiedRow[]>;
  read(ids: readonly string[]): Promise<VerifiedRow[]>;
}

export interface RecordPage {
  records: readonly ClaimRecord[];
  /** By the coordinator's clock. */
  asOfMs: number;
  /** "" on the last page. */
  nextPageToken: string;
}

export interface RangeDigest {
  count: number;
  hash: string;
  /** A lease is at work on it. */
  held: boolean;
  newestUpdatedAtMs: number | undefined;
}

type TableSelection = Pick<VerifiedTable, "source" | "bucketTypes">;

/** The cell's records at the coordinator. Every call throws rather than leave anything out. */
export interface VerifiedRecords {
  list(page: TableSelection & IdRange & { pageSize: number }): Promise<RecordPage>;
  /** One for each range, in order. */
  digests(
    asked: TableSelection & { ranges: readonly IdRange[] },
  ): Promise<{ asOfMs: number; digests: readonly RangeDigest[] }>;
  /** In order. Undefined: nobody has the name. `"other"`: another cell. */
  lookup(buckets: readonly Bucket[]): Promise<readonly (ClaimRecord | "other" | undefined)[]>;
}

/** `rolled_back`: the lease was rolled back by somebody else, which is an alarm of its own. */
export type RepairResult =
  | { kind: "done" | "not_needed" | "rolled_back" }
  | { kind: "refused"; conflicts: readonly Conflict[] };

/** By `rowKey`. */
export type LockedRows = ReadonlyMap<string, VerifiedRow>;

export const rowKey = ({ type, id }: SourceRow): string => `${type}\n${id}`;

export const releaseKey = (key: string, { type, id }: SourceRow): string => `${key}\n${type}\n${id}`;

export interface QueuedRow extends SourceRow {
  leaseUuid: string;
}

/** Of the queue, in any order that stays the same. */
export interface QueuePage {
  /** Undefined: from the first. */
  after: SourceRow | undefined;
  limit: number;
}

/** What the coordinator takes at once. */
export type CallLimits = Pick<Limits, "maxPageItems" | "digestRanges" | "batchOps" | "lookupBuckets">;

export interface VerificationPorts {
  /** Of the cell. */
  cell: string;
  limits: CallLimits;
  tables: readonly VerifiedTable[];
  records: VerifiedRecords;
  /**
   * One local transaction: keeps these rows from changing, lets `decide` tell from them as they are now what the lease is to do, and takes it; then the
   * lease is committed. `not_needed`: `decide` wanted none. `refused`: the coordinator names what stands in the way. Throws for all else.
   */
  repair(rows: readonly SourceRow[], decide: (rows: LockedRows) => Batch | undefined): Promise<RepairResult>;
  /** Of these claims, by `releaseKey`: those that saved deletions are still to give up. That lease will come, and does not know of epochs. */
  deferredReleases(asked: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  slots: {
    /** Also renews it. */
    take(
      uuid: string,
    ): Promise<{ isTaken: true; expiresInMs: number } | { isTaken: false; retryAfterMs: number }>;
    release(uuid: string): Promise<void>;
  };
  progress: {
    load(): Promise<{ text: string; ageMs: number } | undefined>;
    save(text: string): Promise<void>;
  };
  queue: {
    list(page: QueuePage): Promise<QueuedRow[]>;
    remove(rows: readonly QueuedRow[]): Promise<void>;
  };
}

export interface InspectedRow {
  row: AnyRow;
  /** As the database writes it: what its order and its searches go by. */
  idText: string;
  /** Since the time in the table's `changedAt`, by the database's clock. Undefined: it has none. */
  ageMs: number | undefined;
}

/** What a verification needs of a cell's database, beyond its transactions. One implementation for each dialect. */
export interface VerificationDatabase<Tx> {
  count(claimable: Claimable, range: IdRange): Promise<number>;
  /** In source order: decimal ids as numbers, before all others; the others by bytes. */
  page(claimable: Claimable, range: IdRange & { limit: number }): Promise<InspectedRow[]>;
  /** Those that there are. In a transaction they are kept from changing until it ends. */
  byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]>;
  /** What `saveProgress` was given last, and how long ago. */
  loadProgress(): Promise<{ text: string; ageMs: number } | undefined>;
  saveProgress(text: string): Promise<void>;
  listQueue(page: QueuePage): Promise<QueuedRow[]>;
  /** Those that were queued again since, for another lease, stay. */
  removeFromQueue(rows: readonly QueuedRow[]): Promise<void>;
}
