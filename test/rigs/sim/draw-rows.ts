import type { Cell } from "./cell.ts";
import { bucketType } from "../../support/types.ts";
import { nameKey, type LocalRow, type Name } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

const sources = {
  [bucketType("USERNAMES")]: "RAILS_TABLE_USERS",
  [bucketType("ROUTES")]: "RAILS_TABLE_ROUTES",
} as const;

/** Draws a row for a name, sometimes in another spelling. */
export function drawRow(name: Name, cell: Cell, random: Random): LocalRow {
  cell.rows += 1;
  const value = random.chance(0.3) ? name.canonical.toUpperCase() : name.canonical;
  const type = sources[name.type] ?? "RAILS_TABLE_ROUTES";
  const subject = random.pick(["NAMESPACE", "PROJECT", "USER"] as const);
  return {
    ...name,
    value,
    subject: { type: subject, id: `${cell.id}-${cell.rows}` },
    source: { type, id: random.pick(sourceIds) },
  };
}

/**
 * Few ids, so that one source has several names. They are of all kinds that the source order distinguishes.
 */
const sourceIds = ["2", "3", "10", "02", "x2", "\u{ff5e}", "\u{1f600}"] as const;

/** Draws rows for names that the cell does not have and is not changing. */
export function drawNewRows(simulation: Simulation, cell: Cell, random: Random, most: number): LocalRow[] {
  const free = simulation.names.filter((name) => !cell.local.rows.has(nameKey(name)) && !cell.isLocked(name));
  return free.length === 0 ? [] : random.some(free, most).map((name) => drawRow(name, cell, random));
}

export function drawOwnRows(cell: Cell, random: Random, most: number): LocalRow[] {
  const own = [...cell.local.rows.values()].filter((row) => !cell.isLocked(row));
  return own.length === 0 ? [] : random.some(own, most);
}
