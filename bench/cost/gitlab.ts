/**
 * The load of GitLab.com: 50 claims a second on average (300 at the peak), here in batches of four, and 500
 * lookups a second that miss every cache.
 */
export const CLAIMS_PER_SECOND = 50;
export const CLAIMS_OF_ONE = 4;
export const LOOKUPS_PER_SECOND = 500;
export const CELLS = 4;
/** From a begin to its commit: a guess. */
export const HELD_MS = 100;
/** The leases that one cell begins. */
export const CYCLES_PER_SECOND = CLAIMS_PER_SECOND / CLAIMS_OF_ONE / CELLS;
