import type { Bucket, Source, Subject } from "../../client/api-types.ts";
import { rowOf, type Drift, type SkipReason } from "./compare.ts";
import type { NamedClaim } from "./row-names.ts";

export type VerificationStatus =
  /** Everything was verified. */
  | "done"
  /** `maxMs` was over. The next run continues where this one ended. */
  | "out_of_time"
  /**
   * More would change than the limits allow. Read the report, then run with a larger `maxShare` or
   * `maxChanges`.
   */
  | "needs_approval"
  /** Too many other cells are verifying. Nothing was done. */
  | "no_slot"
  /** The slot expired, or another run of this cell has taken over. */
  | "slot_lost"
  /** A verification finished recently (`unlessDoneWithinMs`). Nothing was done. */
  | "not_due"
  /** The caller's `signal` aborted the run. */
  | "stopped";

export interface VerificationCounts {
  rows: number;
  /** Claims that the rows should have. */
  claims: number;
  /** Ranges of source ids whose digests were compared, and how many of them were equal. */
  ranges: number;
  equalRanges: number;
  /** Records read from the coordinator. */
  records: number;
  /** Names that rows use without a claim. */
  missing: number;
  /** Claims that differ from their row. */
  different: number;
  /** Claims that no row uses. */
  extra: number;
  created: number;
  replaced: number;
  destroyed: number;
  /** Rows and records that changed within `recentMs`. */
  recent: number;
  /** Claims that a lease holds. */
  leased: number;
  /**
   * Names that another cell holds, that two rows use, and values that cannot be names. These need a person.
   */
  otherCell: number;
  duplicates: number;
  unnameable: number;
  /** Claims that are not destroyed, because a row needs the name and does not have its claim yet. */
  needed: number;
  /** Claims of a table or column that this run does not verify. */
  notVerified: number;
  /** Drifts that changed between the comparison and the repair. */
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
  needed: 0,
  notVerified: 0,
  changed: 0,
});

/** One drift, duplicate or value that cannot be a name. */
export interface VerificationItem {
  kind: "missing" | "different" | "extra" | "duplicate" | "unnameable";
  reason: Drift["reason"] | "two_rows" | "not_a_name";
  source: Source;
  bucket: Bucket;
  /** The subject of the row. Absent if the row is gone. */
  subject?: Subject;
  /** The claim at the coordinator, if there is one. */
  claim?: { value: string; subject: Subject; source: Source; epoch: number };
  action: "create" | "replace" | "destroy" | "none";
  outcome: "planned" | "done" | "skipped";
  /** Why it was not repaired. */
  skipReason?: SkipReason;
  /** More about the reason, as text. */
  detail?: string;
}

export interface VerificationReport {
  status: VerificationStatus;
  /** False for a dry run: nothing was changed, and `items` has what would be. */
  applied: boolean;
  cell: string;
  /** Whether it continued an earlier run. The counts include that run's. */
  resumed: boolean;
  startedAt: string;
  durationMs: number;
  counts: VerificationCounts;
  /** Counts by source type. */
  tables: Record<string, VerificationCounts>;
  /** The first items of this run, up to `maxItems`. */
  items: VerificationItem[];
  itemsOmitted: number;
  /** Where the next run continues. */
  next?: { pass: string; source: string; after: string };
  /** With `needs_approval`: which limit would be exceeded. */
  approvalReason?: string;
  /** With `no_slot`: when to try again. */
  retryAfterMs?: number;
}

const OUTCOME_COUNTS = { create: "created", replace: "replaced", destroy: "destroyed" } as const;
const SKIP_COUNTS: Partial<Record<SkipReason, keyof VerificationCounts>> = {
  other_cell: "otherCell",
  duplicate: "duplicates",
  leased: "leased",
  recent: "recent",
  changed: "changed",
  needed: "needed",
  not_verified: "notVerified",
};

export const actionCount = ({ action }: Drift): keyof VerificationCounts => OUTCOME_COUNTS[action];
export const skipCount = (skipReason: SkipReason): keyof VerificationCounts | undefined =>
  SKIP_COUNTS[skipReason];

export function itemOf(
  drift: Drift,
  outcome: Pick<VerificationItem, "outcome" | "skipReason">,
): VerificationItem {
  const { action, kind, reason } = drift;
  const { bucket } = drift.action === "destroy" ? drift.record : drift.want;
  const subject = drift.action === "destroy" ? undefined : drift.want.subject;
  const record = drift.action === "create" ? undefined : drift.record;
  return {
    kind,
    reason,
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
  reason: "two_rows",
  source,
  bucket,
  subject,
  action: "none",
  outcome: "skipped",
  skipReason: "duplicate",
});
