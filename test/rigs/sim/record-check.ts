import { isDeepStrictEqual } from "node:util";
import type { RecordedLease } from "./projection.ts";
import { factKey, type Facts, type LedgerRow } from "./judge/rows.ts";
import { storedTypes } from "./judge/type-watch.ts";
import type { Simulation } from "./simulation.ts";

/**
 * Every outstanding lease in the projection that its ledger has not changed since must match the ledger in
 * every column.
 */
export function checkOutstanding(simulation: Simulation): void {
  checkCopies(simulation, simulation.cronJob.record.outstanding());
}

function checkCopies({ judge }: Simulation, rows: readonly RecordedLease[]): void {
  for (const row of rows) {
    const fact = judge.facts.get(factKey(row.cell_id, row.uuid));
    if (fact === undefined || fact.row.position !== row.position) continue;
    judge.check("I13", isDeepStrictEqual({ ...row }, copyOf(fact, row)), () => {
      return (
        `the projection has ${JSON.stringify(row)}, but the ledger of ` +
        `cell ${fact.cell} has ${JSON.stringify(fact.row)}`
      );
    });
    judge.see("recorded lease");
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

/**
 * At the end, the projection has every lease that a ledger remembers, as it is there, and no other
 * outstanding lease.
 */
export function checkRecord(simulation: Simulation): void {
  const { judge, cronJob } = simulation;
  const recorded = cronJob.record.leases();
  checkCopies(simulation, recorded);
  checkTypes(simulation);
  const positions = new Map(recorded.map((row) => [`${row.cell_id}/${row.created_position}`, row.position]));
  for (const [key, { cell, row }] of judge.facts) {
    // A transfer is no lease for whoever reads the projection (Y1).
    if (isHistory(simulation, row) || row.transfer !== null) continue;
    const position = positions.get(`${cell}/${row.created_position}`);
    judge.check(
      "I13",
      position === row.position,
      () => `the projection has lease ${key} at ${position}, but its ledger has it at ${row.position}`,
    );
  }
  // An outcome that no cron pulled in time is pruned in its ledger. The stale listing asks the ledger about
  // such a lease and deletes it.
  const outstanding = recorded.find(({ cell_id, uuid, state, created_position }) => {
    const fact = judge.factOf(cell_id, uuid);
    const isIt = fact?.row.created_position === created_position && fact.state === "GRANTED";
    return state === "GRANTED" && !isIt && !judge.wasUnpulled(cell_id, uuid);
  });
  judge.check(
    "I13",
    outstanding === undefined,
    () => `the projection has lease ${outstanding?.uuid} as outstanding`,
  );
}

/** Whether a lease is so old that the cron has deleted it. */
function isHistory(
  { judge, scheduler, coordinator }: Simulation,
  { decided_at_ms: decidedAtMs }: LedgerRow,
): boolean {
  const isOld = decidedAtMs !== null && decidedAtMs < scheduler.nowMs - coordinator.limits.historyS * 1_000;
  if (isOld) {
    judge.see("history pruned");
    judge.see("S4");
  }
  return isOld;
}

/**
 * The row that the projection must have for a lease. A time may be earlier than the ledger's stamp, because
 * the ledger found that its clock was ahead.
 */
function copyOf({ cell, lease, row }: Facts, recorded: RecordedLease): unknown {
  const { state, position, created_position, decided_by, reason, creates, destroys, replaces, missing } = row;
  return {
    cell_id: cell,
    created_position,
    uuid: lease,
    state,
    position,
    created_at_ms: Math.min(row.created_at_ms, recorded.created_at_ms),
    decided_at_ms:
      row.decided_at_ms === null ? null : Math.min(row.decided_at_ms, recorded.decided_at_ms ?? Infinity),
    decided_by,
    reason,
    creates,
    destroys,
    replaces,
    missing,
  };
}
