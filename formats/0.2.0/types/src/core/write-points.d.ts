export declare const writePoints: {
    readonly any: readonly ["migrate", "raise_format", "keep_name", "confirm_placement", "record_lost_history"];
    readonly audit: readonly ["forget_audit"];
    readonly scrub: readonly ["scrub"];
    readonly ledger: readonly ["raise_incarnation", "grant", "decide", "advance_applied", "prune", "set_state", "revoke_cell_key", "report_status", "renew"];
    readonly removal: readonly ["approve_removal", "start_removal", "finish_removal"];
    readonly shard: readonly ["exchange", "clear"];
    readonly transfers: readonly ["change_transfer", "move_claims"];
    readonly pastClaims: readonly ["drop_past_claims", "erase_past_claims"];
    readonly growth: readonly ["start_growth", "order_cut", "confirm_cut", "abort_growth", "finish_growth"];
    readonly moves: readonly ["copy", "receive", "fence", "clean"];
    readonly reconciliation: readonly ["rebuild_leases", "accept_loss", "finish_reconciliation", "restore_directory"];
    readonly directory: readonly ["add_cell", "change_cell", "mark_cell_removed", "record_key", "revoke_key", "change_types", "use_types", "change_identities", "begin_operation", "end_operation", "take_slot", "release_slot"];
};
export type WritePoint = (typeof writePoints)[keyof typeof writePoints][number];
