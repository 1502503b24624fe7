import type { RawCounts } from "./raw-counts.ts";

/**
 * The cost of one call of one operation: an average over calls that came one after another and shared no
 * messages, except where decisions ride.
 */
export interface WorkCounts {
  system: "leasehold" | "d1-only";
  work: string;
  /** The number of shards of the deployment. */
  shards: number;
  /** The number of claims in one call; 0 for an operation without claims. */
  claims: number;
  /** How many shards the names are placed on, or a fraction: the mean over random names. */
  shardsTouched: number;
  /** The number of calls that the averages cover. */
  calls: number;
  /** Sequential messages, as docs/reference/limits.md states them; null where it does not. */
  rounds: number | null;
  /** Calls of the API. */
  requests: number;
  /** Messages to ledgers and shards, including those from the Worker. */
  messages: number;
  /**
   * Counted separately, without the rows that they read, because the Worker refreshes its copy of the
   * directory by time, not per call.
   */
  directoryMessages: number;
  transactions: number;
  /** Waits of the standalone server for its disk; null where it was not counted. */
  syncs: number | null;
  rowsRead: number;
  rowsWritten: number;
  ledgerRowsRead: number;
  ledgerRowsWritten: number;
  shardRowsRead: number;
  shardRowsWritten: number;
  alarmsSet: number;
  alarmRuns: number;
  d1Calls: number;
  d1RowsRead: number;
  d1RowsWritten: number;
}

/** What is known about an operation before it runs. */
export type Work = Pick<WorkCounts, (typeof workFields)[number]>;
const workFields = ["system", "work", "shards", "claims", "shardsTouched", "rounds"] as const;

export function averageOf(work: Work, calls: number, raw: RawCounts): WorkCounts {
  const { ledger, shard, directory, d1 } = raw;
  const all = (field: keyof typeof ledger): number => (ledger[field] + shard[field]) / calls;
  return {
    ...work,
    calls,
    requests: raw.worker.requests / calls,
    messages: all("messages"),
    directoryMessages: directory.messages / calls,
    transactions: all("transactions"),
    syncs: raw.disk === undefined ? null : raw.disk.syncs / calls,
    rowsRead: all("rowsRead"),
    rowsWritten: all("rowsWritten"),
    ledgerRowsRead: ledger.rowsRead / calls,
    ledgerRowsWritten: ledger.rowsWritten / calls,
    shardRowsRead: shard.rowsRead / calls,
    shardRowsWritten: shard.rowsWritten / calls,
    alarmsSet: all("alarmsSet"),
    alarmRuns: all("alarmRuns"),
    d1Calls: d1.calls / calls,
    d1RowsRead: d1.rowsRead / calls,
    d1RowsWritten: d1.rowsWritten / calls,
  };
}

/** Subtracts `less` from `more`. */
export const difference = (more: RawCounts, less: RawCounts): RawCounts =>
  combined(more, less, (one, other) => one - other);

export const sum = (one: RawCounts, other: RawCounts): RawCounts => combined(one, other, (a, b) => a + b);

function combined(one: RawCounts, other: RawCounts, combine: (a: number, b: number) => number): RawCounts {
  const others = other as unknown as Record<string, Record<string, number>>;
  const parts = Object.entries(one).map(([part, counts]) => [
    part,
    Object.fromEntries(
      Object.entries(counts as Record<string, number>).map(([name, value]) => [
        name,
        combine(value, others[part]?.[name] ?? 0),
      ]),
    ),
  ]);
  return Object.fromEntries(parts) as RawCounts;
}

type Weighted = readonly [weight: number, counted: WorkCounts];

/** Adds up counts, each multiplied by its weight. What is not a count is taken from the first. */
export function weighted(first: Weighted, ...others: Weighted[]): WorkCounts {
  const kept = new Set<string>([...workFields, "calls"]);
  const total = (name: string): number =>
    [first, ...others].reduce((before, [weight, each]) => before + weight * (each[name as "syncs"] ?? 0), 0);
  return Object.fromEntries(
    Object.entries(first[1]).map(([name, value]) => [
      name,
      kept.has(name) || value === null ? value : total(name),
    ]),
  ) as unknown as WorkCounts;
}
