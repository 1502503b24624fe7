import type { CellState } from "../../kernel/messages.ts";

/** The states of a cell, in the order in which the API lists them. */
export const cellStates = [
  "ACTIVE",
  "DRAINING",
  "FROZEN",
  "REMOVING",
  "REMOVED",
] as const satisfies readonly CellState[];
