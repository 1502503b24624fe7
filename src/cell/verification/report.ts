import type { Bucket, Source, Subject } from "../../client/api-types.ts";
import { rowOf, type Drift, type LeftBecause } from "./drift.ts";
import type { NamedClaim } from "./named.ts";

export type VerificationStatus =
  /** All of it. */
  | "done"
  /** The time was up: the next run goes on where this one ended. */
  | "out_of_time"
  /** More would change than is allowed without asking: look at the report, then run again with a larger `maxShare` or `maxChanges`. */
  | "needs_approval"
  /** Other cells verify at the moment; nothing was done. */
  | "no_slot"
  /** Another run of this cell has taken over, or the slot ran out. */
  | "slot_lost"
  /** One was done not long ago (`unlessDoneWithinMs`); nothing was done. */
  | "not_due"
  /** By the caller's signal. */
  | "stopped";

export interface VerificationCounts {
  rows: number;
  /** That the rows stand for. */
  claims: number;
  /** Ranges of source ids whose digests were compared, and those that were equal. */
  ranges: number;
  equalRanges: number;
  /** Records that the coordinator sent. */
  records: number;
  /** Names of rows without a claim. */
  missing: number;
  /** Claims that do not say what their row does. */
  different: number;
  /** Claims without a row. */
  extra: number;
  created: number;
  replaced: number;
  destroyed: number;
  /** Rows and records that are too young to be judged. */
  recent: number;
  /** That a lease is at work on. */
  leased: number;
  /** Names that another cell has, that two rows have, and that can be none. A person has to decide. */
  otherCell: number;
  duplicates: number;
  unnameable: number;
  /** Claims that are not given up, because a row needs the name and could not be given it yet. */
  wanted: number;
  /** Of a table or column that this run does not look at: another row's names, perhaps. */
  notVerified: number;
  /** Changed by others between the reading and the mending. */
  changed: number;
}

export const noCounts = (): VerificationCounts => ({
  rows: 0,
  claims: 0,
  ranges: 0,
  equalRanges: 0,
  records: 0,
  missing: 0,
  different: 0,
  extra: 0,
  created: 0,
  replaced: 0,
  destroyed: 0,
  recent: 0,
  leased: 0,
  otherCell: 0,
  duplicates: 0,
  unnameable: 0,
  wanted: 0,
  notVerified: 0,
  changed: 0,
});

/** One claim that is not as it should be. */
export interface VerificationItem {
  kind: "missing" | "different" | "extra" | "duplicate" | "unnameable";
  because: Drift["because"] | "two_rows" | "not_a_name";
  source: Source;
  bucket: Bucket;
  /** Of the row; missing where the row is gone. */
  subject?: Subject;
  /** What the coordinator has, where that is something else. */
  claim?: { value: string; subject: Subject; source: Source; epoch: number };
  action: "create" | "replace" | "destroy" | "none";
  outcome: "planned" | "done" | "left";
  /** Why nothing is done about it. */
  left?: LeftBecause;
  /** In words, where there is more to say. */
  detail?: string;
}

export interface VerificationReport {
  status: VerificationStatus;
  /** False: nothing was changed, and `items` is the plan. */
  applied: boolean;
  cell: string;
  /** It went on where an earlier run had ended; the counts include that one's. */
  resumed: boolean;
  startedAt: string;
  durationMs: number;
  counts: VerificationCounts;
  /** By source type. */
  tables: Record<string, VerificationCounts>;
  /** The first ones of this run: see `maxItems`. */
  items: VerificationItem[];
  itemsLeftOut: number;
  /** Where the next run goes on. */
  next?: { pass: string; source: string; after: string };
  /** What `needs_approval` asks. */
  question?: string;
  /** Of `no_slot`. */
  retryAfterMs?: number;
}

const OUTCOME_COUNTS = { create: "created", replace: "replaced", destroy: "destroyed" } as const;
const LEFT_COUNTS: Partial<Record<LeftBecause, keyof VerificationCounts>> = {
  other_cell: "otherCell",
  duplicate: "duplicates",
  leased: "leased",
  recent: "recent",
  changed: "changed",
  wanted: "wanted",
  not_verified: "notVerified",
};

export const actionCount = ({ action }: Drift): keyof VerificationCounts => OUTCOME_COUNTS[action];
export const leftCount = (left: LeftBecause): keyof VerificationCounts | undefined => LEFT_COUNTS[left];

export function itemOf(drift: Drift, outcome: Pick<VerificationItem, "outcome" | "left">): VerificationItem {
  const { action, kind, because } = drift;
  const { bucket } = drift.action === "destroy" ? drift.record : drift.want;
  const subject = drift.action === "destroy" ? undefined : drift.want.subject;
  const record = drift.action === "create" ? undefined : drift.record;
  return {
    kind,
    because,
    source: rowOf(drift) as Source,
    bucket,
    ...(subject === undefined ? {} : { subject }),
    ...(record === undefined
      ? {}
      : {
          claim: {
            value: record.bucket.value,
            subject: record.subject,
            source: record.source,
            epoch: record.epoch,
          },
        }),
    action,
    ...outcome,
  };
}

export const duplicateItem = ({ bucket, source, subject }: NamedClaim): VerificationItem => ({
  kind: "duplicate",
  because: "two_rows",
  source,
  bucket,
  subject,
  action: "none",
  outcome: "left",
  left: "duplicate",
});
