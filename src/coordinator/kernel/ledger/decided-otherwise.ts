import { refused, type Refusal } from "../refusal.ts";
import type { LeaseRow } from "./lease-table.ts";

/** Says that a lease has the other outcome, which is final (C1). */
export function decidedOtherwise(row: LeaseRow): Refusal {
  return row.state === "COMMITTED"
    ? refused("FAILED_PRECONDITION", "the lease is already committed, and a decision is final", {
        reason: "LEASE_COMMITTED",
      }).refusal
    : refused("FAILED_PRECONDITION", "the lease is already rolled back, and a decision is final", {
        reason: "LEASE_ROLLED_BACK",
      }).refusal;
}
