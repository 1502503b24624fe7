import { usdOf } from "../cost/cost.ts";
import { worker } from "../cost/prices.ts";
import type { CallCounts } from "./count-reads.ts";
import type { Result } from "./results.ts";

/** The billed usage of a run that changes nothing. */
export interface ReadCost {
  workerRequests: number;
  objectRequests: number;
  rowsRead: number;
  usd: number;
}

/** Computes the cost of a run from the counts of one call of each kind. Undefined when those are missing. */
export function readCost(
  { calls, rows, counts, part, coordinatorCpuSeconds }: Result,
  counted: readonly CallCounts[],
): ReadCost | undefined {
  if (counted.length === 0) return undefined;
  const of = (call: CallCounts["call"]): CallCounts => counted.find((each) => each.call === call) ?? NOTHING;
  const perClaim = (call: CallCounts["call"]): number => of(call).rowsRead / of(call).claims;
  const [digests, lists, lookups] = [
    calls["digestRecords"] ?? 0,
    calls["listRecords"] ?? 0,
    calls["lookupRecords"] ?? 0,
  ];
  const isExport = part === "export";
  const workerRequests = Object.values(calls).reduce((sum, count) => sum + count, 0);
  const messages =
    digests * of("digests").messages + lists * of("list").messages + lookups * of("lookup").messages;
  const objectRequests = isExport
    ? Math.round((rows / of("export").claims) * of("export").messages)
    : messages;
  const sent = counts?.records ?? 0;
  const read =
    (digests > 0 ? rows * perClaim("digests") : 0) +
    sent * perClaim("list") +
    lookups * of("lookup").rowsRead;
  const rowsRead = Math.round(isExport ? rows * perClaim("export") : read);
  // Bills all processor time as if it were the Worker's, which is an upper bound: the time of the objects is
  // included in the price of keeping them awake.
  const cpuUsd = coordinatorCpuSeconds * 1_000 * worker.cpuMsUsd;
  return {
    workerRequests,
    objectRequests,
    rowsRead,
    usd: usdOf({ workerRequests, objectRequests, rowsRead, rowsWritten: 0 }) + cpuUsd,
  };
}

const NOTHING: CallCounts = { call: "list", claims: 1, messages: 0, rowsRead: 0, rowsWritten: 0 };
