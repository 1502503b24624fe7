/**
 * Every durable write of every object, by name. A crash, a lost answer or a repeated delivery can happen
 * before and after each of them. The fault tests inject all of these at every write point, and fail if a
 * write point has no test.
 */
export const writePoints = {
  /** Writes of any object before its first use. */
  any: ["migrate", "raise_format", "keep_name", "confirm_placement", "record_lost_history"],
  /** Every object keeps audit entries until they are copied. */
  audit: ["forget_audit"],
  /** Ledgers and shards store how far a pass of the scrub is. */
  scrub: ["scrub"],
  ledger: [
    "raise_incarnation",
    "grant",
    "decide",
    "advance_applied",
    "prune",
    "set_state",
    "revoke_cell_key",
    "report_status",
    "renew",
  ],
  /** Writes of a ledger whose cell is removed. */
  removal: ["approve_removal", "start_removal", "finish_removal"],
  shard: ["exchange", "clear"],
  /** Writes about transfers. The grant and the decision of a transfer are those of its lease. */
  transfers: ["change_transfer", "move_claims"],
  /** Writes of a shard about claims that have ended. */
  pastClaims: ["drop_past_claims", "erase_past_claims"],
  /** Writes of the directory of a deployment that gets more shards. */
  growth: ["start_growth", "order_cut", "confirm_cut", "abort_growth", "finish_growth"],
  /** Writes of a shard that gives names to others, or gets names from them. */
  moves: ["copy", "receive", "fence", "clean"],
  /** Writes of a part that an operator reconciles. */
  reconciliation: ["rebuild_leases", "accept_loss", "finish_reconciliation", "restore_directory"],
  directory: [
    "add_cell",
    "change_cell",
    "mark_cell_removed",
    "record_key",
    "revoke_key",
    "change_types",
    "use_types",
    "change_identities",
    "begin_operation",
    "end_operation",
    "take_slot",
    "release_slot",
  ],
} as const;

export type WritePoint = (typeof writePoints)[keyof typeof writePoints][number];
