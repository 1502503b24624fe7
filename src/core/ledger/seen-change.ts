import type { SeenChange } from "../messages.ts";
import type { LedgerStore } from "./store.ts";

/**
 * Whether the ledger lacks a change that was pulled from it before (S1). Then it was set back: a change stays
 * in its row until the lease is decided, and an outcome stays until it is forgotten.
 *
 * The position alone is not enough, because a ledger that was set back reaches later positions with its next
 * change. So the row is compared: another grant of the same lease has another `created_position`.
 */
export function lacksSeen(store: LedgerStore, seen: SeenChange): boolean {
  const row = store.find(seen.lease);
  if (row !== undefined && row.created_position === seen.createdPosition) {
    if (row.position === seen.position) return row.state !== seen.state;
    return row.position < seen.position || seen.state !== "GRANTED";
  }
  return seen.position > store.number("pruned_position");
}
