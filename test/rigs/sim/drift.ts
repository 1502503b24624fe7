import type { Op, OpKind } from "../../../src/coordinator/kernel/messages.ts";
import type { Api } from "./api.ts";
import type { Cell } from "./cell.ts";
import { LocalFailure, type LocalChange, type LocalRow } from "./local.ts";
import { drawNewRows, drawOwnRows, drawRow } from "./draw-rows.ts";
import type { Random } from "./random.ts";
import { driftKinds, type DriftKind } from "./simulation-settings.ts";
import type { Simulation } from "./simulation.ts";

/**
 * Makes rows and claims of a cell differ, as mistakes of people and other programs do. A verification must
 * find the drift.
 */
export async function plantDrift(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const kind = random.pick(driftKinds);
  await kinds[kind](simulation, cell, random);
  simulation.judge.see(`drift ${kind}`);
}

const kinds: Record<DriftKind, (simulation: Simulation, cell: Cell, random: Random) => Promise<void>> = {
  "claim lost": (simulation, cell, random) =>
    changeClaims(simulation, cell, random, "destroy", drawOwnRows(cell, random, 2)),
  "orphaned claim": (simulation, cell, random) =>
    changeClaims(simulation, cell, random, "create", drawNewRows(simulation, cell, random, 2)),
  "claim moved": (simulation, cell, random) =>
    changeClaims(
      simulation,
      cell,
      random,
      "replace",
      drawOwnRows(cell, random, 2).map((row) => drawRow(row, cell, random)),
    ),
  "row gone": (_, cell, random) =>
    changeRows(cell, random, { puts: [], removes: drawOwnRows(cell, random, 2) }),
  "row new": (simulation, cell, random) =>
    changeRows(cell, random, { puts: drawNewRows(simulation, cell, random, 2), removes: [] }),
  "row moved": (_, cell, random) =>
    changeRows(cell, random, {
      puts: drawOwnRows(cell, random, 2).map((row) => drawRow(row, cell, random)),
      removes: [],
    }),
  "row renamed": (simulation, cell, random) => {
    const removes = drawOwnRows(cell, random, 1);
    const source = removes[0]?.source;
    const puts =
      source === undefined
        ? []
        : drawNewRows(simulation, cell, random, 1).map((row) => ({ ...row, source: { ...source } }));
    return changeRows(cell, random, { puts, removes });
  },
  "name handed on": (_, cell, random) => {
    // Two rows swap their names.
    const [one, two] = drawOwnRows(cell, random, 2);
    if (one === undefined || two === undefined) return Promise.resolve();
    const puts = [
      { ...one, subject: two.subject, source: two.source },
      { ...two, subject: one.subject, source: one.source },
    ];
    return changeRows(cell, random, { puts, removes: [] });
  },
};

/** Commits a lease of the cell without saving rows. */
async function changeClaims(
  simulation: Simulation,
  cell: Cell,
  random: Random,
  kind: OpKind,
  rows: readonly LocalRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const lease = random.uuid();
  const ops = opsOf(cell, kind, rows);
  for (const row of rows) simulation.judge.drifts.open(cell.id, row, lease);
  await cell.plantDrift(rows, async (api: Api) => {
    const begun = await api.begin(cell.id, cell.caller, { lease, ops, allowMissing: false });
    if (begun.kind === "refused") return;
    await api.decide(cell.id, cell.caller, lease, begun.kind === "ok" ? "COMMITTED" : "ROLLED_BACK");
  });
}

function opsOf(cell: Cell, kind: OpKind, rows: readonly LocalRow[]): Op[] {
  const none = { creates: [], destroys: [], replaces: [] };
  return cell.opsOf({ ...none, [`${kind}s`]: rows });
}

/**
 * Changes rows by plain SQL, without a lease. Some of the rows are queued for verification. SQL would wait
 * for row locks; here the change is skipped instead.
 */
async function changeRows(cell: Cell, random: Random, change: LocalChange): Promise<void> {
  const rows = cell.local.rowsOf(change);
  if (rows.length === 0 || rows.some((row) => cell.isRowLocked(row))) return;
  const leaseUuid = random.uuid();
  try {
    cell.local.drift(
      change,
      random.chance(0.3) ? change.puts.map(({ source }) => ({ ...source, leaseUuid })) : [],
    );
  } catch (error) {
    if (!(error instanceof LocalFailure)) throw error;
  }
}
