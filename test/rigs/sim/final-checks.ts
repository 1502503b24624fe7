import { defaultLimits } from "../../../src/common/limits.ts";
import { checkHistory } from "../../../src/users/conformance/history/check-history.ts";
import { bucketType } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import { isClaimOf, rowKey } from "./judge/rows.ts";
import { nameKey, type LocalRow } from "./local.ts";
import type { Part } from "./part.ts";
import { checkRecord } from "./record-check.ts";
import { Violation } from "./violation.ts";
import type { Simulation } from "./simulation.ts";

/** Looks up every name, so that the history ends with its state. */
export async function lookAtAll(simulation: Simulation): Promise<void> {
  for (const name of simulation.names) await simulation.router.lookup(simulation.shardOf(name), [name]);
}

/**
 * Checks the history of all clients. A forgotten lease may be begun again, which the register does not model,
 * so runs with a short retention are not checked.
 */
export function checkHistories({ judge, recorder, unrecorded, coordinator }: Simulation): void {
  const { outcomeRetentionS, ledgerBytes } = coordinator.limits;
  if (outcomeRetentionS < defaultLimits.outcomeRetentionS || ledgerBytes < defaultLimits.ledgerBytes) return;
  if (judge.seen.has("a fence was forgotten")) return;
  // A cell may find such a lease in a list, and decide it.
  const left = new Set(
    recorder.events.flatMap((each) =>
      each.event === "invoke" && "lease" in each.call && unrecorded.has(each.call.lease) ? [each.id] : [],
    ),
  );
  const result = checkHistory(recorder.events.filter(({ id }) => !left.has(id)));
  judge.check("I18", result.ok, () =>
    result.ok ? "" : `the history of ${result.bucket} has no order:\n${result.explanation}`,
  );
  judge.check(
    "I18",
    !result.ok || result.undecided.length === 0,
    () => "the search for an order in a bucket's history took too long",
  );
}

/**
 * Checks that the alarms alone dropped the holds of dead begins and applied all decisions. If the platform
 * lost an alarm, and no message has made the object set it again, a cron is needed.
 */
export function checkWithoutCron({ judge, coordinator }: Simulation): void {
  const isExcused = (part: Part<object>): boolean => {
    if (part.alarmLost) judge.see("cleanup needs a cron");
    return part.alarmLost;
  };
  // After an early cut, a shard hands its names over only when no transfer holds a scope there (G10). Before,
  // their new shards apply no decisions.
  const phase = judge.growths.copied()?.phase;
  const isHeld = [...judge.images.values()].some(({ ranges }) => ranges.size > 0);
  if (isHeld && (phase === "cutting" || phase === "cut")) return judge.see("a cut waits for a transfer");
  for (const [index, { holds }] of judge.images.entries()) {
    const orphan = [...holds.values()].find(({ cell, lease, epoch, granted_by }) => {
      const fact = judge.factOf(cell, lease);
      return fact?.state !== "GRANTED" || fact.execution?.epochs[granted_by ?? index] !== epoch;
    });
    if (orphan !== undefined && isExcused(coordinator.shard(index))) continue;
    judge.check(
      "I11",
      orphan === undefined,
      () =>
        `${orphan?.canonical} is still held without a cron, by ` +
        `lease ${orphan?.lease} of cell ${orphan?.cell}`,
    );
  }
  for (const { cell, lease, state, isApplied } of judge.facts.values()) {
    if (state === "GRANTED" || isApplied || isExcused(coordinator.ledger(cell))) continue;
    throw new Violation("I11", `lease ${lease} of cell ${cell} is not applied without a cron`);
  }
  judge.see("cleaned up without a cron");
}

export function checkRest(simulation: Simulation): void {
  const { judge } = simulation;
  const held = judge.holds()[0];
  judge.check(
    "I11",
    held === undefined,
    () => `${held?.canonical} is still held by lease ${held?.lease} of cell ${held?.cell}`,
  );
  for (const { cell, lease, state, isApplied } of judge.facts.values()) {
    judge.check("I11", state !== "GRANTED", () => `lease ${lease} of cell ${cell} is still granted`);
    judge.check("I5", isApplied, () => `lease ${lease} of cell ${cell} is still not applied`);
  }
  for (const cell of simulation.cells) checkCell(simulation, cell);
  checkRecord(simulation);
  const rows = simulation.cells.flatMap(({ id, local }) =>
    [...local.rows.values()].filter((row) => !isAnothers(simulation, id, row)),
  ).length;
  judge.check(
    "I5",
    judge.rowClaims().length === rows,
    () => `there are ${judge.rowClaims().length} claims for ${rows} rows of the cells`,
  );
}

/** Checks that each cell can begin leases again: nothing that is over counts against its limits. */
export async function checkAlive({ judge, coordinator }: Simulation, cell: Cell): Promise<void> {
  const { concurrentBegins, outstandingLeases } = coordinator.limits;
  for (let round = 0; round <= Math.min(5, Math.max(concurrentBegins, outstandingLeases)); round += 1) {
    const id = `9${round}`;
    const row = {
      type: bucketType("ROUTES"),
      canonical: `probe-${cell.id}`,
      value: `probe-${cell.id}`,
      subject: { type: "NAMESPACE", id },
      source: { type: "RAILS_TABLE_ROUTES", id },
    } as const;
    const lease = `00000000-0000-4000-8000-0000000${cell.id}000${round}`;
    const batch = {
      lease,
      ops: cell.opsOf({ creates: [row], destroys: [], replaces: [] }),
      allowMissing: false,
    };
    let begun = await cell.api.begin(cell.id, cell.caller, batch);
    // Some runs have disks that are slower than the shortest timeouts.
    for (let tried = 1; begun.kind !== "ok" && tried < 20; tried += 1) {
      await cell.api.sleep(1_000);
      begun = await cell.api.begin(cell.id, cell.caller, batch);
    }
    judge.check(
      "I16",
      begun.kind === "ok",
      () =>
        `without faults, cell ${cell.id} began a lease of a free ` +
        `name and was answered ${JSON.stringify(begun)}`,
    );
    await cell.api.decide(cell.id, cell.caller, lease, "ROLLED_BACK");
  }
}

/**
 * Whether another cell owns the name of a row that was changed without a lease. Only a person can resolve
 * that.
 */
export const isAnothers = ({ judge }: Simulation, cell: string, row: LocalRow): boolean => {
  const owner = judge.claimOn(row)?.cell;
  return judge.drifts.has(cell, row) && owner !== undefined && owner !== cell;
};

/** Checks that the cell's rows and its claims agree in every field. */
function checkCell(simulation: Simulation, { id, local }: Cell): void {
  const { judge } = simulation;
  const claims = new Map(judge.claims().map((claim) => [rowKey(claim), claim]));
  for (const row of local.rows.values()) {
    if (isAnothers(simulation, id, row)) continue;
    const claim = claims.get(nameKey(row));
    judge.check(
      "I5",
      isClaimOf(row, id, claim),
      () => `cell ${id} has ${JSON.stringify(row)}, but its claim is ${JSON.stringify(claim)}`,
    );
  }
  const left = [...local.outstanding.keys()][0];
  judge.check("I5", left === undefined, () => `cell ${id} still has lease ${left} as outstanding`);
}
