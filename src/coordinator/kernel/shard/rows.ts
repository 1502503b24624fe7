import type { Holder, OpKind } from "../messages.ts";

export interface ClaimRow {
  bucket_type: number;
  canonical: string;
  value: string;
  uuid: string;
  cell: string;
  subject_type: number;
  subject_id: string;
  source_type: number;
  source_id: string;
  source_order: string;
  scope: string | null;
  epoch: number;
  created_at_ms: number;
  updated_at_ms: number;
  /** The words of the claim's digest (src/common/digest.ts). */
  digest_0: number;
  digest_1: number;
  digest_2: number;
  digest_3: number;
}

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

/** What the change feed tells of a claim that a destroy has ended. */
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

/** The hold of a create or replace, which will put a claim at a place in the list of its cell's records. */
export type ArrivingHoldRow = HoldRow & { source_order: string };

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

/** Returns a key that identifies one execution. It is the same for all holds of the execution. */
export function executionKey(execution: ExecutionId | HoldRow): string {
  const { cell, lease, incarnation, counter } = execution;
  return `${cell}/${lease}/${incarnation}.${counter}/${epochText(execution)}`;
}

/** Identifies an execution among those that this shard has. Epochs of other shards may be the same. */
export const epochText = ({ epoch, granted_by = null }: Pick<ExecutionId, "epoch" | "granted_by">): string =>
  granted_by === null ? String(epoch) : `${granted_by}.${epoch}`;

/** Returns a key that identifies a bucket. */
export const bucketText = (type: number, canonical: string): string => `${type} ${canonical}`;

/** Returns the bucket of a `bucketText`. */
export function bucketOf(text: string): Pick<HoldRow, "bucket_type" | "canonical"> {
  const space = text.indexOf(" ");
  return { bucket_type: Number(text.slice(0, space)), canonical: text.slice(space + 1) };
}
