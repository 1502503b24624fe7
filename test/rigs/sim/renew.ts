import type { Cell } from "./cell.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/**
 * Renews a lease of the cell: mostly one that is granted, sometimes one that was decided before. Then the
 * cell sometimes reconciles, and may treat other leases as stale.
 */
export async function renew(
  { judge }: Simulation,
  cell: Cell,
  random: Random,
  number: number,
): Promise<void> {
  const own = [...judge.facts.values()].filter((fact) => fact.cell === cell.id);
  const granted = own.filter(({ state }) => state === "GRANTED");
  const candidates = granted.length > 0 && random.chance(0.8) ? granted : own;
  if (candidates.length === 0) return;
  const { lease } = random.pick(candidates);
  const answer = await cell.api.renew(cell.id, cell.caller, lease, `renewal ${number}`);
  if (answer.kind === "ok" && cell.isUp && random.chance(0.5))
    await cell.reconcile({ full: false, orphanMs: 60_000, staleMs: 1_000 });
}
