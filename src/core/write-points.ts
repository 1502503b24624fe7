/**
 * Every durable write of every object, by name. A crash, a lost answer or a second delivery can fall before and after each of them: fault tests
 * do that to every name here, and fail when one has no test.
 */
export const writePoints = {
  /** Any object, before its first use. */
  any: ["migrate", "keep_name", "confirm_placement"],
  ledger: [
    "raise_incarnation",
    "grant",
    "decide",
    "advance_applied",
    "prune",
    "set_state",
    "revoke_cell_key",
  ],
  shard: ["exchange", "clear"],
  directory: [
    "fix_placement",
    "add_cell",
    "change_cell",
    "record_key",
    "revoke_key",
    "take_slot",
    "release_slot",
  ],
} as const;

export type WritePoint = (typeof writePoints)[keyof typeof writePoints][number];
