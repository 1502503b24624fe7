import { objectKinds, type RawCounts } from "./raw-counts.ts";

/**
 * The cost of one call of one operation: an average over calls that came one after another and shared no
 * messages.
 */
export interface WorkCounts {
  system: "leasehold" | "d1-only";
  work: string;
  /** The number of shards of the deployment. */
  shards: number;
  /** The number of claims in one call; 0 for an operation without claims. */
  claims: number;
  shardsTouched: number;
  /** The number of calls that the averages cover. */
  calls: number;
  /** Sequential messages, as docs/reference/limits.md states them; null where it does not. */
  rounds: number | null;
  /** Messages to ledgers and shards, including those from the Worker. */
  messages: number;
  /** Counted separately, because the Worker refreshes its copy of the directory by time, not per call. */
  directoryMessages: number;
  transactions: number;
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

/** The contents of `.bench/counts.json`. */
export interface StoredCounts {
  /** The counted code. */
  commit: string;
  counted: WorkCounts[];
}

/** What is known about an operation before it runs. */
export type Work = Pick<WorkCounts, "system" | "work" | "shards" | "claims" | "shardsTouched" | "rounds">;

export function averageOf(work: Work, calls: number, raw: RawCounts): WorkCounts {
  const { ledger, shard, directory, d1 } = raw;
  const all = (field: keyof typeof ledger): number =>
    objectKinds.reduce((total, kind) => total + raw[kind][field], 0) / calls;
  return {
    ...work,
    calls,
    messages: (ledger.messages + shard.messages) / calls,
    directoryMessages: directory.messages / calls,
    transactions: all("transactions"),
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
  const each = <Part extends object>(a: Part, b: Part): Part => {
    const others = b as Record<string, number>;
    return Object.fromEntries(
      Object.entries(a as Record<string, number>).map(([name, value]) => [
        name,
        combine(value, others[name] ?? 0),
      ]),
    ) as Part;
  };
  return {
    ledger: each(one.ledger, other.ledger),
    shard: each(one.shard, other.shard),
    directory: each(one.directory, other.directory),
    d1: each(one.d1, other.d1),
  };
}
