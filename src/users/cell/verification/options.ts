import { defaultLimits } from "../../../common/limits.ts";
import { invalidArgument } from "../errors.ts";
import type { CallLimits } from "./ports.ts";
import type { VerificationItem } from "./report.ts";

export interface VerifyOptions {
  /** Repairs what it finds. False, the default, is a dry run: it reports what it would change. */
  apply?: boolean;
  /**
   * Skips rows and claims that changed within this time, because their leases may still be open: 1 h by
   * default.
   */
  recentMs?: number;
  /**
   * Compares digests first, and records only where they differ: true by default. False compares all records.
   */
  digests?: boolean | undefined;
  /**
   * Ends the run after the segment in which this time is over. The next run continues there, unless this one
   * is a dry run. No limit by default.
   */
  maxMs?: number;
  /**
   * Stops for approval before a larger share than this of the claims seen so far would change: 0.1 by
   * default. The first 100 changes need no approval. 1 allows everything, for a backfill.
   */
  maxShare?: number;
  /** Stops for approval before more claims than this would change. No limit by default. */
  maxChanges?: number;
  /** Ignores the saved cursor of an earlier run. */
  startOver?: boolean;
  /**
   * Does nothing if an applied verification finished within this time: for processes with the same schedule.
   */
  unlessDoneWithinMs?: number;
  /**
   * How many items that a person must decide about the report keeps: 1,000 by default. They come first.
   * `onItem` receives all.
   */
  maxDecisions?: number;
  /** How many other items the report keeps: 1,000 by default. */
  maxItems?: number;
  /** How many rows, and how many records, are in memory at a time: 1,000 by default. */
  pageRows?: number;
  /** Rows in the range of a digest: 64 by default. */
  rangeRows?: number;
  /** Digests in one call: 256 by default, the coordinator's default limit. */
  digestRanges?: number;
  /** Claims repaired with one lease, while their rows are locked: 500 by default. */
  leaseOps?: number;
  /** Ends the run after the current segment. */
  signal?: AbortSignal | undefined;
  onProgress?: (progress: VerificationProgress) => void;
  onItem?: (item: VerificationItem) => void;
}

export interface VerificationProgress {
  /** The first pass creates and replaces claims, the second one destroys extra claims. */
  pass: "claim" | "release";
  source: string;
  /** Rows of this table and pass. The second pass covers only the part of the table with extra claims. */
  rows: number;
  totalRows: number;
  changes: number;
  rowsPerSecond: number;
  /** Estimate for this table and pass. Undefined while it is unknown. */
  remainingMs: number | undefined;
}

export type Settings = Required<Omit<VerifyOptions, "digests" | "signal" | "onProgress" | "onItem">> & {
  digests: boolean;
} & Pick<VerifyOptions, "signal" | "onProgress" | "onItem">;

/** So many changes need no approval by share, because in a small table a few changes are a large share. */
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
  maxDecisions: 1_000,
  maxItems: 1_000,
  pageRows: 1_000,
  rangeRows: 64,
  digestRanges: 256,
  leaseOps: 500,
} as const;

/** The default limits of the coordinator. `rangeRows` is limited so that reading a range stays short. */
const MAXIMA = {
  pageRows: defaultLimits.maxPageItems,
  rangeRows: 1_000,
  digestRanges: defaultLimits.digestRanges,
  leaseOps: defaultLimits.batchOps,
};

/** Lowers the settings to the limits of this coordinator. */
export const limitedTo = (
  settings: Settings,
  { maxPageItems, digestRanges, batchOps }: CallLimits,
): Settings => ({
  ...settings,
  pageRows: Math.min(settings.pageRows, maxPageItems),
  digestRanges: Math.min(settings.digestRanges, digestRanges),
  leaseOps: Math.min(settings.leaseOps, batchOps),
});

/** @throws `InvalidArgumentError` for an option out of range. */
export function settingsOf(options: VerifyOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: Settings = { ...defaults, ...given };
  for (const name of ["pageRows", "rangeRows", "digestRanges", "leaseOps"] as const) {
    const value = settings[name];
    if (!Number.isSafeInteger(value) || value < 1 || value > MAXIMA[name])
      throw invalidArgument(name, `must be a whole number from 1 to ${MAXIMA[name]}`);
  }
  for (const name of [
    "recentMs",
    "maxMs",
    "maxChanges",
    "maxDecisions",
    "maxItems",
    "unlessDoneWithinMs",
  ] as const) {
    if (!(settings[name] >= 0)) throw invalidArgument(name, "must be 0 or more");
  }
  if (!(settings.maxShare >= 0 && settings.maxShare <= 1))
    throw invalidArgument("maxShare", "must be from 0 to 1");
  return settings;
}
