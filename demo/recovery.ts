import {
  reconcile,
  ReconcileAborted,
  type Finding,
  type ReconcileCounters,
  type ReconcileOptions,
} from "../src/cell/reconcile.ts";
import { stages, type Cell } from "./cell.ts";
import type { CellCrash } from "./cell-crash.ts";
import { pause } from "./queue.ts";

/** As small as a demo needs them. In earnest: a minute, ten minutes, an hour (`reconcileDefaults`). */
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
 * Brings a cell back that died with leases open. Three visits, as its cron would make them, and the last one
 * twice at once.
 */
export async function recover(cell: Cell, diedAtMs: number, runs: RecoveryRun[]): Promise<void> {
  const after = async (ms: number, full: boolean, times = 1): Promise<void> => {
    await pause(diedAtMs + ms - performance.now());
    const label = `cell ${cell.id}, ${((performance.now() - diedAtMs) / 1_000).toFixed(1)} s after its death${full ? ", full" : ""}`;
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

/** What lost answers left behind in cells that did not die: usually nothing. */
export async function reconcileLeftovers(cell: Cell, runs: RecoveryRun[]): Promise<void> {
  if ((await outstanding(cell)) === 0) return;
  await pause(thresholds.staleMs + 200);
  await reconcileOnce(cell, `cell ${cell.id}, at the end, full`, true, runs);
}

export const describeCrashes = ({ crashes }: CellCrash): string => {
  const words = { begun: "begun", saved: "saved, not committed", committed: "committed, not cleared away" };
  return stages.map((stage) => `${crashes[stage]} ${words[stage]}`).join(", ");
};

async function reconcileOnce(cell: Cell, what: string, full: boolean, runs: RecoveryRun[]): Promise<void> {
  const report = (finding: Finding): void => {
    const text =
      finding.kind === "failed"
        ? `${finding.step} failed: ${finding.error}`
        : `saved here, ${finding.coordinator} at the coordinator`;
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
