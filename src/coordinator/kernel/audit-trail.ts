import type { Operator } from "./messages.ts";
import type { Refusal } from "./refusal.ts";

/**
 * The names of changes that are recorded. Each capability adds its own.
 *
 * @public
 */
export interface AuditedActions {
  begin_lease: true;
  commit_lease: true;
  rollback_lease: true;
  freeze_cell: true;
  drain_cell: true;
  undrain_cell: true;
  unfreeze_cell: true;
}

export type AuditedAction = keyof AuditedActions;

/**
 * What an entry says of the state before or after a change, with the names of the API. Times end in `_at_ms`.
 * It has no secrets and no names of claims.
 */
export type AuditState = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** What an operator did, or a cell that works with another one. */
export interface AuditedChange {
  action: AuditedAction;
  /** The cell that the change is about; null if it is about none. */
  cell: string | null;
  /** What was changed: a cell, a key, a lease or a part by its id, a name by its hash, or `types`. */
  target: string;
  /** Null: it did not exist before. */
  before: AuditState | null;
  after: AuditState | null;
}

/** Records what operators change in one object (O1). Without a capability for that, nothing is recorded. */
export interface AuditTrail {
  /** Why no operator may change anything: there is no room for the entry (O3). */
  readonly refusal: Refusal | undefined;
  /** Why no cell may make a change that is recorded: half of the room is for operators (O3). */
  readonly cellRefusal: Refusal | undefined;
  /** Must be called in the transaction that makes the change (O1). */
  append(operator: Operator, change: AuditedChange): void;
}

export const noAuditTrail: AuditTrail = { refusal: undefined, cellRefusal: undefined, append: () => {} };
