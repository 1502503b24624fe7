import type { CellCall, Envelope, Lease } from "../../kernel/messages.ts";

/**
 * Asks whether the caller's key is valid, for calls that the ledger itself doesn't serve. With `read`, the
 * read with this id also counts as running, until `EndRead` or for 30 s.
 */
export interface Authorize extends CellCall {
  read?: string;
}

export interface EndRead extends Envelope {
  read: string;
}

/**
 * Asks for granted leases in the order of their grants: those with a position above `afterPosition` that were
 * created at `createdAfterMs` or later.
 */
export interface ListLeasesRequest extends CellCall {
  createdAfterMs: number;
  afterPosition: number;
  limit: number;
}

export interface LeasePage {
  leases: Lease[];
  /** The `afterPosition` of the next page; 0 on the last page. */
  nextPosition: number;
}
