import type { WorkCounts } from "../counts/work-counts.ts";
import { durableObject, dynamoDb, rows, worker } from "./prices.ts";

/** The billed usage of one piece of work. */
interface Use {
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

/** Cloudflare bills the rows of D1, not the calls. It bills an alarm that is set as one row written. */
export const usdOfWork = (counted: WorkCounts): number =>
  usdOf({
    workerRequests: counted.requests,
    objectRequests: counted.messages + counted.alarmRuns,
    rowsRead: counted.rowsRead + counted.d1RowsRead,
    rowsWritten: counted.rowsWritten + counted.d1RowsWritten + counted.alarmsSet,
  });

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
