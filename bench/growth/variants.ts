/** What a deployment may hold, and how each of these numbers grows while the others stay. */
export interface Variant {
  /** Claims that are stored, over all shards and cells. */
  claims: number;
  /** Granted leases of the first cell that nobody has decided. */
  outstanding: number;
  /** Decided leases that the first cell's ledger still remembers. */
  decided: number;
  cells: number;
  shards: number;
}

export const axes = [
  "claims",
  "outstanding",
  "decided",
  "cells",
  "shards",
] as const satisfies readonly (keyof Variant)[];
export type Axis = (typeof axes)[number];

const base: Variant = { claims: 1_000, outstanding: 0, decided: 0, cells: 4, shards: 1 };

/**
 * A hundred outstanding leases are one full page of the list: the page of an empty list says nothing about a
 * long one.
 */
const values: Record<Axis, readonly number[]> = {
  claims: [1_000, 100_000, 1_000_000, 5_000_000],
  outstanding: [0, 100, 10_000],
  decided: [0, 1_000_000],
  cells: [1, 4, 16, 64],
  shards: [1, 4, 16, 64, 256],
};

const smallValues: Record<Axis, readonly number[]> = {
  claims: [1_000, 10_000, 50_000],
  outstanding: [0, 100, 200],
  decided: [0, 5_000],
  cells: [1, 4],
  shards: [1, 4],
};

export const variantOf = (changes: Partial<Variant>): Variant => ({ ...base, ...changes });

export const variantsOf = (axis: Axis, isSmall: boolean): Variant[] =>
  (isSmall ? smallValues : values)[axis].map((value) => variantOf({ [axis]: value }));

/** What the others of its axis are compared with. */
export const isBase = (axis: Axis, variant: Variant): boolean => variant[axis] === base[axis];

/**
 * What grows in one ledger is measured at that ledger: among cycles of other cells its cost would thin out.
 */
export const cellsUsed = (axis: Axis, { cells }: Variant): string[] =>
  axis === "outstanding" || axis === "decided" ? ["1"] : cellIds(cells);

export const cellIds = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index + 1));
