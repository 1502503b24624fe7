import { isDeepStrictEqual } from "node:util";
import type { OpenLeaseRow } from "./projection.ts";
import { factKey, type Facts } from "./judge/rows.ts";
import { storedTypes } from "./judge/type-watch.ts";
import type { Simulation } from "./simulation.ts";

/** Every open lease in the projection that is still granted must match its ledger in every column. */
export function checkOpen({ judge, cronJob }: Simulation): void {
  for (const row of cronJob.record.openLeases()) {
    const fact = judge.facts.get(factKey(row.cell_id, row.uuid));
    if (fact?.state !== "GRANTED" || fact.row.created_position !== row.created_position) continue;
    judge.check("I13", isDeepStrictEqual({ ...row }, copyOf(fact, row)), () => {
      return (
        `the projection has ${JSON.stringify(row)}, but the ledger of ` +
        `cell ${fact.cell} has ${JSON.stringify(fact.row)}`
      );
    });
    judge.see("recorded lease");
  }
}

/**
 * Wherever a run has compared all leases of a cell, the projection lacks none that was granted before the run
 * and still is (S4).
 *
 * @param before the leases that existed before the run
 */
export function checkCompared(
  { judge, cronJob }: Simulation,
  startedMs: number,
  before: ReadonlySet<string>,
): void {
  const compared = cronJob.record.cellsPulledSince(startedMs);
  const recorded = new Set(cronJob.record.openLeases().map((row) => factKey(row.cell_id, row.uuid)));
  for (const [key, { cell, row, state }] of judge.facts) {
    if (!before.has(key) || state !== "GRANTED" || row.transfer !== null || !compared.has(cell)) continue;
    judge.check("I13", recorded.has(key), () => `a run has left out lease ${key}, which is granted`);
  }
}

/** D1 has the set of types as the directory has it, to give it back after a loss (T6). */
export function checkTypes({ judge, cronJob, coordinator }: Simulation): void {
  const stored = storedTypes(coordinator.directory.disk);
  if (stored === undefined) return;
  const copy = cronJob.record.types();
  judge.check(
    "I13",
    isDeepStrictEqual(copy && { ...copy, declaredAt: stored.declaredAt }, stored),
    () => `D1 has the set of types at ${copy?.position}, but the directory has it at ${stored.position}`,
  );
}

/** At the end, the projection has the leases that ledgers have as granted, and no others. */
export function checkRecord(simulation: Simulation): void {
  const { judge, cronJob } = simulation;
  checkOpen(simulation);
  checkTypes(simulation);
  const recorded = cronJob.record.openLeases();
  const keys = new Set(recorded.map((row) => `${row.cell_id}/${row.created_position}`));
  for (const [key, { cell, row, state }] of judge.facts) {
    // A transfer is no lease for whoever reads the projection (Y1).
    if (state !== "GRANTED" || row.transfer !== null) continue;
    judge.check(
      "I13",
      keys.has(`${cell}/${row.created_position}`),
      () => `the projection lacks lease ${key}, which its ledger has as granted`,
    );
  }
  const left = recorded.find(({ cell_id, uuid, created_position }) => {
    const fact = judge.factOf(cell_id, uuid);
    return fact?.row.created_position !== created_position || fact.state !== "GRANTED";
  });
  judge.check("I13", left === undefined, () => `the projection still has lease ${left?.uuid} as open`);
  judge.see("S4");
}

/**
 * The row that the projection must have for a lease. A time may be earlier than the ledger's stamp, because
 * the ledger found that its clock was ahead.
 */
function copyOf({ cell, lease, row }: Facts, recorded: OpenLeaseRow): unknown {
  const { created_position, creates, destroys, replaces, missing } = row;
  return {
    cell_id: cell,
    created_position,
    uuid: lease,
    created_at_ms: Math.min(row.created_at_ms, recorded.created_at_ms),
    creates,
    destroys,
    replaces,
    missing,
  };
}
