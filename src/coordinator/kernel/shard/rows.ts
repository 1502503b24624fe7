import type { BucketKey, Holder, OpKind } from "../messages.ts";
import { column, table, type RowOf } from "../table.ts";

/** Permanent ownership, one row per bucket: the primary key makes a name unique. */
export const claimTable = table(
  "claim",
  {
    bucket_type: column<number>("INTEGER NOT NULL"),
    canonical: column<string>("TEXT NOT NULL"),
    value: column<string>("TEXT NOT NULL"),
    uuid: column<string>("TEXT NOT NULL"),
    cell: column<string>("TEXT NOT NULL"),
    subject_type: column<number>("INTEGER NOT NULL"),
    subject_id: column<string>("TEXT NOT NULL"),
    source_type: column<number>("INTEGER NOT NULL"),
    source_id: column<string>("TEXT NOT NULL"),
    source_order: column<string>("TEXT NOT NULL"),
    scope: column<string | null>("TEXT"),
    epoch: column<number>("INTEGER NOT NULL"),
    created_at_ms: column<number>("INTEGER NOT NULL"),
    updated_at_ms: column<number>("INTEGER NOT NULL"),
    // The words of the claim's digest (src/common/digest.ts).
    digest_0: column<number>("INTEGER NOT NULL"),
    digest_1: column<number>("INTEGER NOT NULL"),
    digest_2: column<number>("INTEGER NOT NULL"),
    digest_3: column<number>("INTEGER NOT NULL"),
  },
  "STRICT, WITHOUT ROWID",
  ["PRIMARY KEY (bucket_type, canonical)"],
);

export type ClaimRow = RowOf<typeof claimTable>;

export interface HoldRow {
  bucket_type: number;
  canonical: string;
  kind: OpKind;
  cell: string;
  lease: string;
  incarnation: number;
  counter: number;
  epoch: number;
  held_at_ms: number;
  uuid: string | null;
  value: string | null;
  subject_type: number | null;
  subject_id: string | null;
  source_type: number | null;
  source_id: string | null;
  source_order: string | null;
  scope: string | null;
  /** The shard that granted the hold, if it has moved since (G6). Null: this one. */
  granted_by: number | null;
}

/** What is noted of a claim that a destroy has ended. */
export type ChangedClaimRow = Pick<
  ClaimRow,
  | "bucket_type"
  | "canonical"
  | "value"
  | "uuid"
  | "subject_type"
  | "subject_id"
  | "source_type"
  | "source_id"
  | "scope"
  | "epoch"
>;

/** The columns of a `ChangedClaimRow`. */
export const CHANGED_COLUMNS =
  "bucket_type, canonical, value, uuid, subject_type, subject_id, source_type, source_id, scope, epoch";

export type Claimant = Pick<
  HoldRow,
  "cell" | "subject_type" | "subject_id" | "source_type" | "source_id" | "scope" | "epoch"
>;

/** What a prepare needs to know of a hold that is in the way. */
export type Holding = Pick<HoldRow, "kind" | "cell">;

/** Identifies one execution of a prepare, and so all holds that it made (B4). */
export interface ExecutionId extends Holder {
  epoch: number;
  /** The shard that granted it, if that is another one (G6). */
  granted_by?: number | null;
}

/** A hold of more than single names. An execution has at most one on a shard. */
export interface WideHold extends ExecutionId {
  readonly canonical?: undefined;
  readonly held_at_ms: number;
}

/** What a shard asks about: the hold of a name, or a wide hold, which has none. */
export type AskedHold = HoldRow | WideHold;

/** Returns a key that identifies one execution. It is the same for all holds of the execution. */
export function executionKey(execution: ExecutionId | HoldRow): string {
  const { cell, lease, incarnation, counter } = execution;
  return `${cell}/${lease}/${incarnation}.${counter}/${epochText(execution)}`;
}

/** Identifies an execution among those that this shard has. Epochs of other shards may be the same. */
export const epochText = ({ epoch, granted_by = null }: Pick<ExecutionId, "epoch" | "granted_by">): string =>
  granted_by === null ? String(epoch) : `${granted_by}.${epoch}`;

export const keyOf = ({ bucket_type: type, canonical }: HoldRow): BucketKey => ({ type, canonical });

/** Returns a key that identifies a bucket. */
export const bucketText = (type: number, canonical: string): string => `${type} ${canonical}`;

/** Returns the bucket of a `bucketText`. */
export function bucketOf(text: string): Pick<HoldRow, "bucket_type" | "canonical"> {
  const space = text.indexOf(" ");
  return { bucket_type: Number(text.slice(0, space)), canonical: text.slice(space + 1) };
}
