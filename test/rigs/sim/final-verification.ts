import type { VerificationReport } from "../../../src/users/cell/verification/report.ts";
import type { Cell } from "./cell.ts";
import { isClaimOf, rowKey } from "./judge/rows.ts";
import { nameKey } from "./local.ts";
import { isAnothers } from "./final-checks.ts";
import { Violation } from "./violation.ts";
import type { Simulation } from "./simulation.ts";

/**
 * No row counts as recent, and every change is allowed. Small leases, as some runs allow few ops in a lease.
 */
const OPTIONS = { apply: true, recentMs: 0, maxShare: 1, startOver: true, leaseOps: 2 } as const;

const MOST_STEPS = 20_000;

/** Verifies all cells twice, because a cell may need a name that another one gives up. */
export async function verifyAll(simulation: Simulation): Promise<void> {
  for (let round = 0; round < 2; round += 1)
    for (const cell of simulation.cells) await verified(simulation, cell, round === 0);
}

/**
 * A further verification has nothing to do, and all names match their rows, except for names that another
 * cell owns.
 */
export async function checkVerified(simulation: Simulation): Promise<void> {
  const { judge, cells } = simulation;
  for (const cell of cells) {
    const { counts, items } = await verified(simulation, cell, true);
    const changes = counts.created + counts.replaced + counts.destroyed;
    judge.check(
      "I22",
      changes === 0,
      () => `a second verification of cell ${cell.id} changed ${changes} claims: ${JSON.stringify(items)}`,
    );
    checkAgreement(simulation, cell);
  }
}

function checkAgreement(simulation: Simulation, { id, local }: Cell): void {
  const { judge } = simulation;
  const claims = new Map(judge.rowClaims().map((claim) => [rowKey(claim), claim]));
  for (const row of local.rows.values()) {
    const isRight = isAnothers(simulation, id, row) || isClaimOf(row, id, claims.get(nameKey(row)));
    judge.check(
      "I22",
      isRight,
      () =>
        `cell ${id} was verified and has ${JSON.stringify(row)}, whose ` +
        `claim is ${JSON.stringify(claims.get(nameKey(row)))}`,
    );
  }
  for (const [key, claim] of claims) {
    judge.check(
      "I22",
      claim.cell !== id || local.rows.has(key),
      () => `cell ${id} was verified and has a claim on ${key} without a row`,
    );
  }
}

/**
 * Repeats a verification until it is done. Some runs have disks that are slower than the shortest timeouts,
 * and the slot of the last run may not have expired yet.
 */
async function verified(simulation: Simulation, cell: Cell, digests: boolean): Promise<VerificationReport> {
  for (let tried = 0; tried < 20; tried += 1) {
    const report = await simulation.runUntil(cell.verify({ ...OPTIONS, digests }));
    if (report?.status === "done" && report.counts.leased === 0 && report.counts.changed === 0) return report;
    await simulation.pass(70_000, MOST_STEPS);
    await simulation.runUntil(cell.reconcile({ full: true, orphanMs: 60_000, staleMs: 60_000 }));
  }
  throw new Violation("I22", `without faults, cell ${cell.id} cannot be verified`);
}
