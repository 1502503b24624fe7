import { objectKinds, type RawCounts } from "./raw-counts.ts";

/**
 * What one call of one kind of work costs, on average over calls that came one after another and shared
 * nothing.
 */
export interface WorkCounts {
  system: "leasehold" | "d1-only";
  work: string;
  /** Of the deployment. */
  shards: number;
  /** In one call; 0 for work that has none. */
  claims: number;
  shardsTouched: number;
  /** How many the averages are of. */
  calls: number;
  /**
   * Messages that must wait for each other, as docs/reference/limits.md states them; null where it does not.
   */
  rounds: number | null;
  /** To ledgers and shards, that of the Worker included. */
  messages: number;
  /** On their own: the Worker's copy of the directory is refreshed by the clock, and by no call. */
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

/** What is known of a piece of work before it is done. */
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

/** `more` without what is in `less` too. */
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
