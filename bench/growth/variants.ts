/** The contents of a deployment. Each axis changes one of these numbers while the others stay the same. */
export interface Variant {
  /** Stored claims, over all shards and cells. */
  claims: number;
  /** Granted leases of the first cell without a decision. */
  outstanding: number;
  /** Decided leases that the first cell's ledger still stores. */
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

/** With these, a cycle and a lookup should cost about as much as with few. */
export const MANY_CLAIMS = 5_000_000;

/** `targets` is what the performance targets need, and `small` shows that the benchmark works. */
export type Extent = "full" | "targets" | "small";

/**
 * 100 outstanding leases fill one page of the list. The page of an empty list shows nothing about a long one.
 */
const values: Record<Extent, Partial<Record<Axis, readonly number[]>>> = {
  full: {
    claims: [base.claims, 100_000, 1_000_000, MANY_CLAIMS],
    outstanding: [0, 100, 10_000],
    decided: [0, 1_000_000],
    cells: [1, 4, 16, 64],
    shards: [1, 4, 16, 64, 256],
  },
  targets: { claims: [base.claims, MANY_CLAIMS] },
  small: {
    claims: [base.claims, 10_000, 50_000],
    outstanding: [0, 100, 200],
    decided: [0, 5_000],
    cells: [1, 4],
    shards: [1, 4],
  },
};

export const variantOf = (changes: Partial<Variant>): Variant => ({ ...base, ...changes });

/** The variants of one axis; empty when the extent leaves it out. */
export const variantsOf = (axis: Axis, extent: Extent): Variant[] =>
  (values[extent][axis] ?? []).map((value) => variantOf({ [axis]: value }));

/** Whether the other variants of the axis are compared with this one. */
export const isBase = (axis: Axis, variant: Variant): boolean => variant[axis] === base[axis];

/**
 * The cells that cycles use. Axes that grow one ledger use only its cell, because cycles of other cells would
 * dilute its cost.
 */
export const cellsUsed = (axis: Axis, { cells }: Variant): string[] =>
  axis === "outstanding" || axis === "decided" ? ["1"] : cellIds(cells);

export const cellIds = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index + 1));
