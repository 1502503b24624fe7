import {
  reconcile,
  ReconcileAborted,
  type Finding,
  type ReconcileCounters,
  type ReconcileOptions,
} from "../src/users/cell/reconcile.ts";
import { stages, type Cell } from "./cell.ts";
import type { CellCrash } from "./cell-crash.ts";
import { pause } from "./queue.ts";

/**
 * Much shorter than `reconcileDefaults`, which are minutes and hours, so that the demo does not have to wait.
 */
const thresholds = {
  commitGraceMs: 500,
  staleMs: 2_000,
  orphanMs: 2_000,
  windowMs: 600_000,
} satisfies Partial<ReconcileOptions>;

export interface RecoveryRun {
  what: string;
  counters: ReconcileCounters;
}

/**
 * Recovers a cell that died with open leases. It reconciles three times, as the cell's cron would. The last
 * time, two full reconciliations run in parallel.
 */
export async function recover(cell: Cell, diedAtMs: number, runs: RecoveryRun[]): Promise<void> {
  const after = async (ms: number, full: boolean, times = 1): Promise<void> => {
    await pause(diedAtMs + ms - performance.now());
    const seconds = ((performance.now() - diedAtMs) / 1_000).toFixed(1);
    const label = `cell ${cell.id}, ${seconds} s after its death${full ? ", full" : ""}`;
    await Promise.all(
      Array.from({ length: times }, (_, index) =>
        reconcileOnce(cell, times > 1 ? `${label}, ${index + 1} of ${times}` : label, full, runs),
      ),
    );
  };
  await after(0, false);
  await after(thresholds.commitGraceMs + 200, false);
  await after(thresholds.staleMs + 200, true, 2);
  await checkNothingLeft(cell);
}

/** Reconciles the leases that lost answers left open in cells that did not die. Usually there are none. */
export async function reconcileLeftovers(cell: Cell, runs: RecoveryRun[]): Promise<void> {
  if ((await outstanding(cell)) === 0) return;
  await pause(thresholds.staleMs + 200);
  await reconcileOnce(cell, `cell ${cell.id}, at the end, full`, true, runs);
}

export const describeCrashes = ({ crashes }: CellCrash): string => {
  const words = {
    begun: "begun",
    saved: "saved but not committed",
    committed: "committed but still outstanding",
  };
  return stages.map((stage) => `${crashes[stage]} ${words[stage]}`).join(", ");
};

async function reconcileOnce(cell: Cell, what: string, full: boolean, runs: RecoveryRun[]): Promise<void> {
  const report = (finding: Finding): void => {
    const text =
      finding.kind === "failed"
        ? `${finding.step} failed: ${finding.error}`
        : `its rows are saved, but at the coordinator it is ${finding.coordinator}`;
    cell.counts.problems.push(`cell ${cell.id}: recovery of lease ${finding.uuid}: ${text}`);
  };
  try {
    const { counters } = await reconcile(
      { local: cell.database, remote: cell.leases, report },
      { ...thresholds, full },
    );
    runs.push({ what, counters });
  } catch (error) {
    if (!(error instanceof ReconcileAborted)) throw error;
    cell.counts.problems.push(`cell ${cell.id}: ${error.message}`);
    runs.push({ what: `${what}: aborted`, counters: error.result.counters });
  }
}

async function checkNothingLeft(cell: Cell): Promise<void> {
  const left = await outstanding(cell);
  if (left > 0) cell.counts.problems.push(`cell ${cell.id}: ${left} leases are open after its recovery`);
}

async function outstanding(cell: Cell): Promise<number> {
  const here = await cell.database.list({ afterUuid: "", limit: 1_000 });
  const there = await cell.leases.list({ pageToken: "", pageSize: 1_000 });
  return here.length + there.leases.length;
}
