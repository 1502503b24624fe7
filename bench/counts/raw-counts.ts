/** What is counted, as the instrumented Workers say it. Read by Node and by workerd. */
export const objectKinds = ["ledger", "shard", "directory"] as const;
export type ObjectKind = (typeof objectKinds)[number];

interface ObjectCounts {
  /** Calls that came in. */
  messages: number;
  /** Those that wrote a row. */
  transactions: number;
  rowsRead: number;
  /** As SQLite bills them: a row of an index is one too. */
  rowsWritten: number;
  /** Times that an alarm was set. Cloudflare bills each as a row more. */
  alarmsSet: number;
  alarmRuns: number;
}

interface D1Counts {
  /** Ways to the database and back: a batch is one. */
  calls: number;
  rowsRead: number;
  rowsWritten: number;
}

export type RawCounts = Record<ObjectKind, ObjectCounts> & { d1: D1Counts };

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
});

/** Where an instrumented Worker answers its counts: GET reads them, POST sets them to nothing besides. */
export const COUNTS_PATH = "/__counts";
/** Below it, with POST: what else a counter has to make happen. */
export const CRON_PATH = `${COUNTS_PATH}/cron`;
export const ALARMS_PATH = `${COUNTS_PATH}/alarms`;
export const ADVANCE_PATH = `${COUNTS_PATH}/later`;
