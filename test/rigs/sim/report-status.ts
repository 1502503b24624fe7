import type { Cell } from "./cell.ts";
import type { Simulation } from "./simulation.ts";

/** Reports the status of a cell, and reads it. The version is the number of the report. */
export async function reportStatus({ judge }: Simulation, cell: Cell, number: number): Promise<void> {
  const sdk = { name: "simulated", version: String(number) };
  const reconciliation = { outcome: "done" as const, endedAgoMs: 0 };
  const answer = await cell.api.reportStatus(cell.id, cell.caller, { sdk, reconciliation });
  if (answer.kind !== "ok") return;
  const read = await cell.api.reportedStatus(cell.id, cell.caller);
  if (read.kind !== "ok") return;
  judge.see("U1");
  judge.check("I34", read.value !== null, () => `cell ${cell.id} has reported, and its ledger has no status`);
}
