import type { ReconcileCounters, ReconcileLoopOptions } from "leasehold/cell";

type ReconcileRun = Parameters<NonNullable<ReconcileLoopOptions["onRun"]>>[0];

/** Counts what the reconciliations of this process have done. */
export class Reconciliations {
  runs = 0;
  failedRuns = 0;
  lastRunMs: number | undefined;
  /** The sums of all runs, except `pending`, which is the count of the last run. */
  readonly totals: ReconcileCounters = {
    processed: 0,
    committed: 0,
    rolledBack: 0,
    pending: 0,
    orphaned: 0,
    contradicted: 0,
    failed: 0,
  };

  add({ result, error }: ReconcileRun): void {
    this.runs += 1;
    this.lastRunMs = Date.now();
    if (error !== undefined) this.failedRuns += 1;
    if (result === undefined) return;
    for (const name of Object.keys(this.totals) as (keyof ReconcileCounters)[])
      this.totals[name] += result.counters[name];
    this.totals.pending = result.counters.pending;
  }
}
