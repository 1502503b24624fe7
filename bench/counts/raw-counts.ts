/**
 * The counters, in the form in which the instrumented Workers return them. Node and workerd both import this.
 */
export const objectKinds = ["ledger", "shard", "directory"] as const;
export type ObjectKind = (typeof objectKinds)[number];

interface ObjectCounts {
  /** Incoming calls. */
  messages: number;
  /** Transactions that wrote a row. */
  transactions: number;
  rowsRead: number;
  /** As Cloudflare bills them: each row of an index counts too. */
  rowsWritten: number;
  /** How often an alarm was set. Cloudflare bills each as one row written. */
  alarmsSet: number;
  alarmRuns: number;
}

interface D1Counts {
  /** Round trips to the database. A batch is one. */
  calls: number;
  rowsRead: number;
  rowsWritten: number;
}

export type RawCounts = Record<ObjectKind, ObjectCounts> & {
  d1: D1Counts;
  /** Calls of the API. */
  worker: { requests: number };
  /** Waits for the disk. They are counted only for the standalone server. */
  disk?: { syncs: number };
};

const noObject = (): ObjectCounts => ({
  messages: 0,
  transactions: 0,
  rowsRead: 0,
  rowsWritten: 0,
  alarmsSet: 0,
  alarmRuns: 0,
});

export const emptyCounts = (): RawCounts => ({
  ledger: noObject(),
  shard: noObject(),
  directory: noObject(),
  d1: { calls: 0, rowsRead: 0, rowsWritten: 0 },
  worker: { requests: 0 },
});

/** The path of the counts in an instrumented Worker. GET reads them, and POST also resets them. */
export const COUNTS_PATH = "/__counts";
/** Further paths, called with POST, that trigger work to be counted. */
export const CRON_PATH = `${COUNTS_PATH}/cron`;
export const ALARMS_PATH = `${COUNTS_PATH}/alarms`;
export const ADVANCE_PATH = `${COUNTS_PATH}/later`;
/** From then on, the clocks of objects stand still until they are advanced. */
export const STOP_PATH = `${COUNTS_PATH}/stop`;
