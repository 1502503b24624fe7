import type { Op, OpKind } from "../../../src/core/messages.ts";
import type { Api } from "./api.ts";
import type { Cell } from "./cell.ts";
import { LocalFailure, type LocalChange, type LocalRow } from "./local.ts";
import { newRows, ownRows, rowOf } from "./plans.ts";
import type { Random } from "./random.ts";
import { driftKinds, type DriftKind } from "./weather.ts";
import type { World } from "./world.ts";

/** Sets rows and claims of a cell at odds, as mistakes of people and of other programs do. A verification has to find it. */
export async function plantDrift(world: World, cell: Cell, random: Random): Promise<void> {
  const kind = random.pick(driftKinds);
  await kinds[kind](world, cell, random);
  world.judge.see(`drift ${kind}`);
}

const kinds: Record<DriftKind, (world: World, cell: Cell, random: Random) => Promise<void>> = {
  "claim lost": (world, cell, random) =>
    behindTheBack(world, cell, random, "destroy", ownRows(cell, random, 2)),
  "claim of nobody": (world, cell, random) =>
    behindTheBack(world, cell, random, "create", newRows(world, cell, random, 2)),
  "claim moved": (world, cell, random) =>
    behindTheBack(
      world,
      cell,
      random,
      "replace",
      ownRows(cell, random, 2).map((row) => rowOf(row, cell, random)),
    ),
  "row gone": (_, cell, random) =>
    withoutAsking(cell, random, { puts: [], removes: ownRows(cell, random, 2) }),
  "row new": (world, cell, random) =>
    withoutAsking(cell, random, { puts: newRows(world, cell, random, 2), removes: [] }),
  "row moved": (_, cell, random) =>
    withoutAsking(cell, random, {
      puts: ownRows(cell, random, 2).map((row) => rowOf(row, cell, random)),
      removes: [],
    }),
  "row renamed": (world, cell, random) => {
    const removes = ownRows(cell, random, 1);
    const source = removes[0]?.source;
    const puts =
      source === undefined
        ? []
        : newRows(world, cell, random, 1).map((row) => ({ ...row, source: { ...source } }));
    return withoutAsking(cell, random, { puts, removes });
  },
  "name handed on": (_, cell, random) => {
    // Two rows of the same table change their names for each other's.
    const [one, two] = ownRows(cell, random, 2);
    if (one === undefined || two === undefined) return Promise.resolve();
    const puts = [
      { ...one, subject: two.subject, source: two.source },
      { ...two, subject: one.subject, source: one.source },
    ];
    return withoutAsking(cell, random, { puts, removes: [] });
  },
};

/** A lease of the cell's own that is committed although nothing was saved. */
async function behindTheBack(
  world: World,
  cell: Cell,
  random: Random,
  kind: OpKind,
  rows: readonly LocalRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const lease = random.uuid();
  const ops = opsOf(cell, kind, rows);
  for (const row of rows) world.judge.drifts.open(cell.id, row, lease);
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

/** Plain SQL; now and then for rows that are known to lack their claims. It waits for row locks like all SQL: here it is left out instead. */
async function withoutAsking(cell: Cell, random: Random, change: LocalChange): Promise<void> {
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
