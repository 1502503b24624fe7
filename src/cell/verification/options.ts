import { defaultLimits } from "../../core/limits.ts";
import { invalidArgument } from "../errors.ts";
import type { CallLimits } from "./ports.ts";
import type { VerificationItem } from "./report.ts";

export interface VerifyOptions {
  /** False, the default: only tells what it would do. */
  apply?: boolean;
  /** Rows and claims that were changed within this time are left alone: 1 h by default. */
  recentMs?: number;
  /** Compares digests first, so that what is equal is not sent: true by default. Now and then a run should be without. */
  digests?: boolean | undefined;
  /** Ends after the segment during which this time is up; the next run goes on there, unless it is a dry one. No limit by default. */
  maxMs?: number;
  /** Asks before more than this share of the claims that were seen would change: 0.1 by default, once there are 100 changes. 1, as for a backfill: never. */
  maxShare?: number;
  /** Asks before more claims than this would change. No limit by default. */
  maxChanges?: number;
  /** Begins at the beginning, whatever an earlier run has left. */
  startOver?: boolean;
  /** Does nothing when a verification that applied was done within this time: for several processes with one schedule. */
  unlessDoneWithinMs?: number;
  /** Items that the report keeps: 1,000 by default. `onItem` hears of all. */
  maxItems?: number;
  /** Rows, and records, in memory at a time: 1,000 by default. */
  pageRows?: number;
  /** Rows that share a digest: 64 by default. */
  rangeRows?: number;
  /** Digests in one call: 256 by default, which is also the coordinator's limit. */
  digestRanges?: number;
  /** Claims that are put right with one lease, during which their rows are locked: 500 by default. */
  leaseOps?: number;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: VerificationProgress) => void;
  onItem?: (item: VerificationItem) => void;
}

export interface VerificationProgress {
  /** Names are taken in the first pass and given up in the second. */
  pass: "claim" | "release";
  source: string;
  /** Of this table and pass; of the second one, the part in which there is something to give up. */
  rows: number;
  totalRows: number;
  changes: number;
  rowsPerSecond: number;
  /** Of this table and pass; undefined while nobody can tell. */
  remainingMs: number | undefined;
}

export type Settings = Required<Omit<VerifyOptions, "digests" | "signal" | "onProgress" | "onItem">> & {
  digests: boolean;
} & Pick<VerifyOptions, "signal" | "onProgress" | "onItem">;

/** Changes that are never asked about: in a small table, a few are a large share. */
export const CHANGES_WITHOUT_APPROVAL = 100;

const defaults = {
  apply: false,
  recentMs: 3_600_000,
  digests: true,
  maxMs: Number.POSITIVE_INFINITY,
  maxShare: 0.1,
  maxChanges: Number.POSITIVE_INFINITY,
  startOver: false,
  unlessDoneWithinMs: 0,
  maxItems: 1_000,
  pageRows: 1_000,
  rangeRows: 64,
  digestRanges: 256,
  leaseOps: 500,
} as const;

/** What the coordinator takes at once, unless told otherwise; and what can be read without a pause. */
const MAXIMA = {
  pageRows: defaultLimits.maxPageItems,
  rangeRows: 1_000,
  digestRanges: defaultLimits.digestRanges,
  leaseOps: defaultLimits.batchOps,
};

/** With what the coordinator takes at once. */
export const limitedTo = (
  settings: Settings,
  { maxPageItems, digestRanges, batchOps }: CallLimits,
): Settings => ({
  ...settings,
  pageRows: Math.min(settings.pageRows, maxPageItems),
  digestRanges: Math.min(settings.digestRanges, digestRanges),
  leaseOps: Math.min(settings.leaseOps, batchOps),
});

/** Throws `InvalidArgumentError` for an option that cannot be. */
export function settingsOf(options: VerifyOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: Settings = { ...defaults, ...given };
  for (const name of ["pageRows", "rangeRows", "digestRanges", "leaseOps"] as const) {
    const value = settings[name];
    if (!Number.isSafeInteger(value) || value < 1 || value > MAXIMA[name])
      throw invalidArgument(name, `must be a whole number from 1 to ${MAXIMA[name]}`);
  }
  for (const name of ["recentMs", "maxMs", "maxChanges", "maxItems", "unlessDoneWithinMs"] as const) {
    if (!(settings[name] >= 0)) throw invalidArgument(name, "must be 0 or more");
  }
  if (!(settings.maxShare >= 0 && settings.maxShare <= 1))
    throw invalidArgument("maxShare", "must be from 0 to 1");
  return settings;
}
