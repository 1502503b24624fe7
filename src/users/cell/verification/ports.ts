import type { Batch, Bucket, Conflict, ForeignRecord, ClaimRecord, Source } from "../../client/api-types.ts";
import type { Limits } from "../../../common/limits.ts";
import type { SourceRow } from "../changes.ts";
import type { Claimable, RowClaim } from "../claimable.ts";
import type { AnyRow } from "../table.ts";

export interface VerifiedClaim extends RowClaim {
  /** Why the coordinator would refuse this claim, if it would. */
  fault?: string | undefined;
}

/** A row of a claimable table, as verification sees it. */
export interface VerifiedRow {
  id: string;
  /** Claims of the columns that are verified. */
  claims: readonly VerifiedClaim[];
  /** Time since its last change, by the database's clock. Undefined if the table has no `changedAt`. */
  ageMs: number | undefined;
}

/** Source ids after `after` ("" for the first) and up to `upTo` (undefined: to the end), in source order. */
export interface IdRange {
  after: string;
  upTo: string | undefined;
}

/** A claimable table, with the columns that are enabled. */
export interface VerifiedTable {
  name: string;
  source: Source["type"];
  /** The bucket types to verify: those that no disabled column shares. */
  bucketTypes: readonly Bucket["type"][];
  /** Whether all attributes of the table are enabled. */
  hasEveryAttribute: boolean;
  count(range: IdRange): Promise<number>;
  /** Rows of a range, in source order. */
  page(range: IdRange & { limit: number }): Promise<VerifiedRow[]>;
  read(ids: readonly string[]): Promise<VerifiedRow[]>;
}

export interface RecordPage {
  /** All records of their source ids. There are none only if the range has no more. */
  records: readonly ClaimRecord[];
  /** By the coordinator's clock. */
  asOfMs: number;
  /** "" on the last page. */
  nextPageToken: string;
}

export interface RangeDigest {
  count: number;
  hash: string;
  /** Whether a lease holds a name in the range. */
  held: boolean;
  newestUpdatedAtMs: number | undefined;
}

type TableSelection = Pick<VerifiedTable, "source" | "bucketTypes">;

/** The cell's records at the coordinator. Each call throws if it cannot answer completely. */
export interface VerifiedRecords {
  list(page: TableSelection & IdRange & { pageSize: number }): Promise<RecordPage>;
  /** Answers one digest for each range, in order. */
  digests(
    asked: TableSelection & { ranges: readonly IdRange[] },
  ): Promise<{ asOfMs: number; digests: readonly RangeDigest[] }>;
  /** Answers in order. Undefined: the name is free. A foreign record belongs to another cell. */
  lookup(buckets: readonly Bucket[]): Promise<readonly (ClaimRecord | ForeignRecord | undefined)[]>;
}

/** `rolled_back`: the coordinator rolled the lease back, which is reported separately as a contradiction. */
export type RepairResult =
  | { kind: "done" | "not_needed" | "rolled_back" }
  | { kind: "refused"; conflicts: readonly Conflict[] };

/** Rows by `rowKey`. */
export type LockedRows = ReadonlyMap<string, VerifiedRow>;

export const rowKey = ({ type, id }: SourceRow): string => `${type}\n${id}`;

export const releaseKey = (key: string, { type, id }: SourceRow): string => `${key}\n${type}\n${id}`;

export interface QueuedRow extends SourceRow {
  leaseUuid: string;
}

/** A page of the queue, in any stable order. */
export interface QueuePage {
  /** Undefined for the first page. */
  after: SourceRow | undefined;
  limit: number;
}

/** The coordinator's limits for a single call. */
export type CallLimits = Pick<Limits, "maxPageItems" | "digestRanges" | "batchOps" | "lookupBuckets">;

export interface VerificationPorts {
  /** The id of the cell. */
  cell: string;
  /** The declared types, with the rules by which names become canonical. */
  types: Types;
  limits: CallLimits;
  tables: readonly VerifiedTable[];
  records: VerifiedRecords;
  /**
   * Runs one local transaction with a lease. Locks the rows, passes them to `decide` as they are now, begins
   * a lease with the batch that it returns, and commits. `not_needed`: `decide` returned no batch. `refused`:
   * the coordinator refused the lease with conflicts. Throws for any other failure.
   */
  repair(rows: readonly SourceRow[], decide: (rows: LockedRows) => Batch | undefined): Promise<RepairResult>;
  /**
   * Answers which of these claims, by `releaseKey`, a deferred lease (`deleteLater`) is still going to
   * destroy. That lease does not compare epochs, so nothing else may destroy these claims before it.
   */
  deferredReleases(asked: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  slots: {
    /** Takes the slot, or renews it. */
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
  /** Whether the id column holds whole numbers, which are ordered as such. */
  isIntegerId: boolean;
  /** The id as the database writes it, which determines order and search. */
  idText: string;
  /** Time since the table's `changedAt`, by the database's clock. Undefined if it has none. */
  ageMs: number | undefined;
}

/** Reads rows as `VerificationDatabase.page` does. */
export type ReadPage = (claimable: Claimable, range: IdRange & { limit: number }) => Promise<InspectedRow[]>;

/**
 * What verification needs from a cell's database, apart from transactions. Each dialect implements it. Reads
 * throw if something hides rows of the table from them: a hidden row is not gone, and keeps its names.
 */
export interface VerificationDatabase<Tx> {
  /**
   * Throws unless these rows, which a read in the transaction did not find, are known to be gone.
   *
   * @param isDeleted whether the SDK deleted them. A savepoint may have undone it.
   */
  checkGone(tx: Tx, claimable: Claimable, ids: readonly string[], isDeleted: boolean): Promise<void>;
  count(claimable: Claimable, range: IdRange): Promise<number>;
  /** Answers rows in source order: decimal ids first, as numbers; then all others, by bytes. */
  page(claimable: Claimable, range: IdRange & { limit: number }): Promise<InspectedRow[]>;
  /** Runs `work`, in which all pages have the rows of one moment. */
  inSnapshot<T>(work: (page: ReadPage) => Promise<T>): Promise<T>;
  /** Answers those rows that exist. In a transaction, it locks them until the transaction ends. */
  byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]>;
  /** Answers the last text given to `saveProgress`, and its age. */
  loadProgress(): Promise<{ text: string; ageMs: number } | undefined>;
  saveProgress(text: string): Promise<void>;
  listQueue(page: QueuePage): Promise<QueuedRow[]>;
  /** Keeps rows that were queued again for another lease in the meantime. */
  removeFromQueue(rows: readonly QueuedRow[]): Promise<void>;
}
import type { Types } from "../../../common/types/types.ts";
