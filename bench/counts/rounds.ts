/**
 * Sequential rounds, as docs/reference/limits.md states them. No counter can show which messages wait for
 * which others, so these numbers are stated, not counted.
 */
export const rounds = {
  begin: 2,
  decide: 1,
  refusedTaken: 2,
  refusedLeased: 4,
  lookup: 1,
  lookupHeld: 2,
  listLeases: 1,
  /** The minimum. */
  listRecords: 2,
} as const;
