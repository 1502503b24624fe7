import type { WorkCounts } from "../counts/work-counts.ts";
import { durableObject, dynamoDb, rows, worker } from "./prices.ts";

/** What someone is charged for by use, for one piece of work. */
export interface Use {
  workerRequests: number;
  objectRequests: number;
  rowsRead: number;
  rowsWritten: number;
}

/**
 * Processor time of the Worker for one request. Measured on one machine at less than 1 ms for a begin, a
 * commit or a lookup; at its price it is a fifteenth of the request itself, so that more care would change
 * nothing.
 */
const WORKER_CPU_MS = 1;

export const usdOf = ({ workerRequests, objectRequests, rowsRead, rowsWritten }: Use): number =>
  workerRequests * (worker.requestUsd + WORKER_CPU_MS * worker.cpuMsUsd) +
  objectRequests * durableObject.requestUsd +
  rowsRead * rows.readUsd +
  rowsWritten * rows.writtenUsd;

/** An object that never sleeps. */
export const awakeUsd = (seconds: number): number =>
  seconds * durableObject.gigabytes * durableObject.gigabyteSecondUsd;

export type System = WorkCounts["system"];

/**
 * A begin and its commit of so many claims, with all that follows: clean-up, the fleet's record, forgetting.
 * Undefined when it was not counted.
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

/** Calls of D1 are not charged for, only their rows; an alarm that is set is charged as a row. */
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
 * DynamoDB behind the same Worker: one transaction for a begin and one for a commit, each of the lease and
 * all its claims.
 */
export function dynamoDbCycleUsd(claims: number): number {
  const items = claims + 1;
  const unitsUsd = 2 * items * dynamoDb.unitsOfTransactionalWrite * dynamoDb.writeUnitUsd;
  return unitsUsd + usdOf({ workerRequests: 2, objectRequests: 0, rowsRead: 0, rowsWritten: 0 });
}

/** A strongly consistent read. */
export const dynamoDbLookupUsd = (): number =>
  dynamoDb.readUnitUsd + usdOf({ workerRequests: 1, objectRequests: 0, rowsRead: 0, rowsWritten: 0 });
