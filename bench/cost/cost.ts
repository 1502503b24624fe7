import type { WorkCounts } from "../counts/work-counts.ts";
import { durableObject, dynamoDb, rows, worker } from "./prices.ts";

/** The billed usage of one piece of work. */
export interface Use {
  workerRequests: number;
  objectRequests: number;
  rowsRead: number;
  rowsWritten: number;
}

/**
 * Processor time of the Worker for one request. A begin, a commit and a lookup each measured less than 1 ms
 * on one machine. At its price, 1 ms costs a fifteenth of the request itself, so a more exact value would
 * change nothing.
 */
const WORKER_CPU_MS = 1;

export const usdOf = ({ workerRequests, objectRequests, rowsRead, rowsWritten }: Use): number =>
  workerRequests * (worker.requestUsd + WORKER_CPU_MS * worker.cpuMsUsd) +
  objectRequests * durableObject.requestUsd +
  rowsRead * rows.readUsd +
  rowsWritten * rows.writtenUsd;

/** The cost of one object that never hibernates, for a number of seconds. */
export const awakeUsd = (seconds: number): number =>
  seconds * durableObject.gigabytes * durableObject.gigabyteSecondUsd;

export type System = WorkCounts["system"];

/**
 * The usage of a begin and its commit of `claims` claims, with everything that follows: clean-up, the cron's
 * pull into D1, and deletion of the decided lease. Undefined when it was not counted.
 */
export function cycleUse(
  counted: readonly WorkCounts[],
  system: System,
  shards: number,
  claims: number,
): Use | undefined {
  const [begin, commit] = ["begin", "commit"].map((work) => find(counted, system, work, shards, claims));
  if (begin === undefined || commit === undefined) return undefined;
  const later = counted.find((each) => each.system === system && each.work === FORGOTTEN);
  const parts = later === undefined ? [begin, commit] : [begin, commit, later];
  return { ...summed(parts), workerRequests: 2 };
}

export function lookupUse(counted: readonly WorkCounts[], system: System, shards: number): Use | undefined {
  const lookup = find(counted, system, "lookup, there", shards, 1);
  return lookup === undefined ? undefined : { ...summed([lookup]), workerRequests: 1 };
}

const FORGOTTEN = "pulls and forgets, per lease decided before";

const find = (
  counted: readonly WorkCounts[],
  system: System,
  work: string,
  shards: number,
  claims: number,
): WorkCounts | undefined =>
  counted.find(
    (each) =>
      each.system === system &&
      each.work === work &&
      each.claims === claims &&
      (system === "d1-only" || each.shards === shards),
  );

/** Cloudflare bills the rows of D1, not the calls. It bills an alarm that is set as one row written. */
function summed(parts: readonly WorkCounts[]): Omit<Use, "workerRequests"> {
  const total = (of: (counted: WorkCounts) => number): number =>
    parts.reduce((sum, part) => sum + of(part), 0);
  return {
    objectRequests: total(
      ({ messages, directoryMessages, alarmRuns }) => messages + directoryMessages + (alarmRuns ?? 0),
    ),
    rowsRead: total(({ rowsRead, d1RowsRead }) => rowsRead + d1RowsRead),
    rowsWritten: total(
      ({ rowsWritten, d1RowsWritten, alarmsSet }) => rowsWritten + d1RowsWritten + alarmsSet,
    ),
  };
}

/**
 * The cost of a cycle with DynamoDB behind the same Worker: one transaction for the begin and one for the
 * commit, each of the lease and all its claims.
 */
export function dynamoDbCycleUsd(claims: number): number {
  const items = claims + 1;
  const unitsUsd = 2 * items * dynamoDb.unitsOfTransactionalWrite * dynamoDb.writeUnitUsd;
  return unitsUsd + usdOf({ workerRequests: 2, objectRequests: 0, rowsRead: 0, rowsWritten: 0 });
}

/** The cost of a lookup with DynamoDB, as a strongly consistent read. */
export const dynamoDbLookupUsd = (): number =>
  dynamoDb.readUnitUsd + usdOf({ workerRequests: 1, objectRequests: 0, rowsRead: 0, rowsWritten: 0 });
