import type { Batch, Bucket, Conflict, Record as ClaimRecord, Source } from "../../client/api-types.ts";
import type { Limits } from "../../core/limits.ts";
import type { SourceRow } from "../changes.ts";
import type { RowClaim } from "../claimable.ts";

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
  isWhole: boolean;
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

type Asked = Pick<VerifiedTable, "source" | "bucketTypes">;

/** The cell's records at the coordinator. Every call throws rather than leave anything out. */
export interface VerifiedRecords {
  list(page: Asked & IdRange & { pageSize: number }): Promise<RecordPage>;
  /** One for each range, in order. */
  digests(
    asked: Asked & { ranges: readonly IdRange[] },
  ): Promise<{ asOfMs: number; digests: readonly RangeDigest[] }>;
  /** In order. Undefined: nobody has the name. `"other"`: another cell. */
  lookup(buckets: readonly Bucket[]): Promise<readonly (ClaimRecord | "other" | undefined)[]>;
}

/** `undone`: the lease was rolled back by somebody else, which is an alarm of its own. */
export type Mended =
  | { kind: "done" | "nothing" | "undone" }
  | { kind: "refused"; conflicts: readonly Conflict[] };

/** By `rowKey`. */
export type LockedRows = ReadonlyMap<string, VerifiedRow>;

export const rowKey = ({ type, id }: SourceRow): string => `${type}\n${id}`;

export const givenUpKey = (key: string, { type, id }: SourceRow): string => `${key}\n${type}\n${id}`;

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
export type TakenAtOnce = Pick<Limits, "maxPageItems" | "digestRanges" | "batchOps" | "lookupBuckets">;

export interface VerificationPorts {
  /** Of the cell. */
  cell: string;
  limits: TakenAtOnce;
  tables: readonly VerifiedTable[];
  records: VerifiedRecords;
  /**
   * One local transaction: keeps these rows from changing, lets `decide` tell from them as they are now what the lease is to do, and takes it; then the
   * lease is committed. `nothing`: `decide` wanted none. `refused`: the coordinator names what stands in the way. Throws for all else.
   */
  mend(rows: readonly SourceRow[], decide: (rows: LockedRows) => Batch | undefined): Promise<Mended>;
  /** Of these claims, by `givenUpKey`: those that saved deletions are still to give up. That lease will come, and does not know of epochs. */
  givenUpLater(asked: ReadonlySet<string>): Promise<ReadonlySet<string>>;
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
