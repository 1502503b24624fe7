/**
 * Sequential rounds, as docs/reference/limits.md states them. They are stated and not counted: what waits for
 * what shows in no counter.
 */
export const rounds = {
  begin: 2,
  decide: 2,
  refusedTaken: 2,
  refusedLeased: 4,
  lookup: 1,
  lookupHeld: 2,
  listLeases: 1,
  /** At least. */
  listRecords: 2,
} as const;
