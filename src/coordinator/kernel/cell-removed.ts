import { refused, type Refusal } from "./refusal.ts";

/** The refusal of a change of a cell that was removed (X4, X5). */
export const cellRemoved = (cell: string): { ok: false; refusal: Refusal } =>
  refused("FAILED_PRECONDITION", `cell ${cell} was removed, which is final; nothing of it can be changed`, {
    reason: "CELL_REMOVED",
  });

/** The refusal of a call of a cell that was removed. */
export const callOfRemovedCell: Refusal = refused(
  "PERMISSION_DENIED",
  "the cell was removed: its names are released, and its id is never used again",
  { reason: "CELL_REMOVED" },
).refusal;
