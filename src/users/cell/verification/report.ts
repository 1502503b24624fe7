import type { Bucket, Source, Subject } from "../../client/api-types.ts";
import { rowOf, type Drift, type Duplicate, type SkipReason } from "./compare.ts";

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
  /** The slot expired, other cells wait for it, or another run of this cell has taken over. */
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
  /** The scope of the row, if it has one. */
  scope?: string;
  /** The claim at the coordinator, if there is one. */
  claim?: { value: string; subject: Subject; source: Source; scope?: string; epoch: number };
  action: "create" | "replace" | "destroy" | "none";
  outcome: "planned" | "done" | "skipped";
  /** Why it was not repaired. */
  skipReason?: SkipReason;
  /** With `other_cell`: the id of the cell that has the name. Absent if it got the name during the run. */
  otherCell?: string;
  /** With `duplicate` and `not_verified`: the row that has the name too. */
  otherRow?: Source;
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
  /**
   * The items of this run. First those that a person must decide about (`isDecision`), up to `maxDecisions`.
   * Then the first of all others, up to `maxItems`.
   */
  items: VerificationItem[];
  /** How many more items a person must decide about. */
  decisionsOmitted: number;
  /** How many more other items there were. */
  itemsOmitted: number;
  /** Where the next run continues. */
  next?: { pass: string; source: string; after: string };
  /** With `needs_approval`: which limit would be exceeded. */
  approvalReason?: string;
  /** With `no_slot`, and with `slot_lost` while others wait: when to try again. */
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

const DECISIONS: ReadonlySet<SkipReason> = new Set([
  "other_cell",
  "duplicate",
  "unnameable",
  "not_verified",
] as const);

/**
 * Whether a person must decide about an item, because verification cannot repair it.
 *
 * @example
 * ```ts
 * import { isDecision } from "leasehold/cell";
 *
 * const { items } = await cell.verify(); // a dry run: changes nothing
 * for (const { source, bucket, skipReason, otherCell, otherRow } of items.filter(isDecision))
 *   console.log(`${source.type} ${source.id}: ${bucket.value}`, skipReason, otherCell ?? otherRow);
 * ```
 */
export const isDecision = ({ skipReason }: Pick<VerificationItem, "skipReason">): boolean =>
  skipReason !== undefined && DECISIONS.has(skipReason);

export function itemOf(
  drift: Drift,
  outcome: Pick<VerificationItem, "outcome" | "skipReason" | "otherCell" | "otherRow">,
): VerificationItem {
  const { action, kind, reason } = drift;
  const { bucket } = drift.action === "destroy" ? drift.record : drift.want;
  const { subject, scope } = drift.action === "destroy" ? {} : drift.want;
  const record = drift.action === "create" ? undefined : drift.record;
  return {
    kind,
    reason,
    source: rowOf(drift) as Source,
    bucket,
    ...(subject === undefined ? {} : { subject }),
    ...(scope === undefined ? {} : { scope }),
    ...(record === undefined
      ? {}
      : {
          claim: {
            value: record.bucket.value,
            subject: record.subject,
            source: record.source,
            ...(record.scope === undefined ? {} : { scope: record.scope }),
            epoch: record.epoch,
          },
        }),
    action,
    ...outcome,
  };
}

export const duplicateItem = ({
  name: { bucket, source, subject },
  otherRow,
}: Duplicate): VerificationItem => ({
  kind: "duplicate",
  reason: "two_rows",
  source,
  bucket,
  subject,
  action: "none",
  outcome: "skipped",
  skipReason: "duplicate",
  otherRow,
});
