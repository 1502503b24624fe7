/** Delays and thresholds. Most of them are minutes in production, which is too long for a demonstration. */
export interface Timing {
  /** The pause between the end of a cell's process and its restart. */
  restartMs: number;
  /** How long the router caches the cell of a name. */
  lookupCacheMs: number;
  /** The pause between two reconciliations of a cell. */
  everyMs: number;
  /** Reconciliation leaves a younger saved lease to the process that saved it. */
  commitGraceMs: number;
  /** Reconciliation rolls back an older lease that has no rows. */
  staleMs: number;
}

export const normalTiming: Timing = {
  restartMs: 5_000,
  lookupCacheMs: 3_000,
  everyMs: 3_000,
  commitGraceMs: 2_000,
  staleMs: 10_000,
};

/** For tests. */
export const quickTiming: Timing = {
  restartMs: 700,
  lookupCacheMs: 400,
  everyMs: 400,
  commitGraceMs: 300,
  staleMs: 2_500,
};
