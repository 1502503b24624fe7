import { isDeepStrictEqual } from "node:util";
import type { RecordedLease } from "./projection.ts";
import { factKey, type Facts, type LedgerRow } from "./judge/rows.ts";
import type { Simulation } from "./simulation.ts";

/** A position is a time in ms, and a counter of 10 bits. */
const msOf = (position: number): number => Math.floor(position / 1_024);

/** What the fleet record has as outstanding, and the ledger has not changed since, is the same to the last column. */
export function checkOutstanding(simulation: Simulation): void {
  checkCopies(simulation, simulation.cronJob.record.outstanding());
}

function checkCopies({ judge }: Simulation, rows: readonly RecordedLease[]): void {
  for (const row of rows) {
    const fact = judge.facts.get(factKey(row.cell_id, row.uuid));
    if (fact === undefined || fact.row.position !== row.position) continue;
    judge.check("I13", isDeepStrictEqual({ ...row, payload: parsed(row) }, copyOf(fact)), () => {
      return `the fleet record has ${JSON.stringify(row)}, and the ledger of cell ${fact.cell} ${JSON.stringify(fact.row)}`;
    });
    if (row.payload !== null) judge.see("recorded payload");
  }
}

/** At rest every lease that a ledger remembers is in the fleet record as it is, and no other is outstanding there. */
export function checkRecord(simulation: Simulation): void {
  const { judge, cronJob } = simulation;
  const recorded = cronJob.record.leases();
  checkCopies(simulation, recorded);
  const positions = new Map(recorded.map((row) => [`${row.cell_id}/${row.created_position}`, row.position]));
  for (const [key, { cell, row }] of judge.facts) {
    if (isHistory(simulation, row)) continue;
    const position = positions.get(`${cell}/${row.created_position}`);
    judge.check(
      "I13",
      position === row.position,
      () => `the fleet record has lease ${key} at ${position}, and its ledger at ${row.position}`,
    );
  }
  // An outcome that waited too long for a cron is forgotten unpulled; the stale listing meets it, asks the ledger and drops it.
  const outstanding = recorded.find(({ cell_id, uuid, state, created_position }) => {
    const fact = judge.factOf(cell_id, uuid);
    const isIt = fact?.row.created_position === created_position && fact.state === "GRANTED";
    return state === "GRANTED" && !isIt && !judge.wasUnpulled(cell_id, uuid);
  });
  judge.check(
    "I13",
    outstanding === undefined,
    () => `the fleet record has lease ${outstanding?.uuid} as outstanding`,
  );
}

/** Old enough for the cron to have dropped it. */
function isHistory({ judge, scheduler, coordinator }: Simulation, { decided, position }: LedgerRow): boolean {
  const isOld = decided === 1 && msOf(position) < scheduler.nowMs - coordinator.limits.historyS * 1_000;
  if (isOld) judge.see("history pruned");
  return isOld;
}

const parsed = ({ payload }: RecordedLease): unknown => (payload === null ? null : JSON.parse(payload));

/** What the record has to say of it. A decided lease leaves no names behind. */
function copyOf({ cell, lease, row }: Facts): unknown {
  const {
    state,
    position,
    created_position,
    decided,
    decided_by,
    reason,
    creates,
    destroys,
    replaces,
    missing,
    payload,
  } = row;
  return {
    cell_id: cell,
    created_position,
    uuid: lease,
    state,
    position,
    created_at_ms: msOf(created_position),
    decided_at_ms: decided === 1 ? msOf(position) : null,
    decided_by,
    reason,
    creates,
    destroys,
    replaces,
    missing,
    payload: decided === 1 || payload === null ? null : JSON.parse(payload),
  };
}
