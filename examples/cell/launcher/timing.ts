/**
 * How soon things happen. In production most of these are minutes: nobody wants to wait for that in front of
 * a demo.
 */
export interface Timing {
  /** Between the end of a cell's process and its next start. */
  restartMs: number;
  /** How long the router remembers where a name is. */
  routeCacheMs: number;
  /** Between two reconciliations of a cell. */
  everyMs: number;
  /** A saved lease that is younger is left to the process that saved it. */
  commitGraceMs: number;
  /** A lease that was not saved for this long is given up. */
  staleMs: number;
}

export const normalTiming: Timing = {
  restartMs: 5_000,
  routeCacheMs: 3_000,
  everyMs: 3_000,
  commitGraceMs: 2_000,
  staleMs: 10_000,
};

/** For tests. */
export const quickTiming: Timing = {
  restartMs: 700,
  routeCacheMs: 400,
  everyMs: 400,
  commitGraceMs: 300,
  staleMs: 2_500,
};
