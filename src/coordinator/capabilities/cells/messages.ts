import type { Cell } from "../../kernel/directory/messages.ts";
import type { CellState, OperatorCall } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    CELL_EXISTS: true;
  }
}

export type NewCell = OperatorCall & Pick<Cell, "cell" | "name" | "address" | "locationHint">;

export interface CellChange extends OperatorCall {
  cell: string;
  name?: string;
  address?: string;
  updatedAtMs: number;
}

/**
 * Changes the state of a cell, based on the state with this version. If the state has changed since, a
 * message that asks for another state is refused (A2).
 */
export interface SetState extends OperatorCall {
  state: SettableState;
  stateVersion: number;
}

/** The states that an operator sets. */
export type SettableState = Exclude<CellState, "REMOVING" | "REMOVED">;

declare module "../../kernel/messages.ts" {
  interface CellStates {
    /** The ledger grants only the begins of a verification (X1). */
    DRAINING: true;
    /** The ledger grants no begin. Everything else works. */
    FROZEN: true;
  }
}
