import { knownMethod, type Trace } from "./trace.ts";

/** A dataset of Workers Analytics Engine. Writing to it is not waited for, and costs no subrequest. */
export interface AnalyticsDataset {
  writeDataPoint(point: { indexes: string[]; blobs: string[]; doubles: number[] }): void;
}

/**
 * Counts a request, if a dataset is bound. `docs/operating/monitoring.md` lists the columns: their order is
 * what queries use. Like the log, they contain no path, name or key.
 */
export function countRequest(
  { route, code, reason, principal, startedMs }: Trace,
  method: string,
  status: number,
  dataset: AnalyticsDataset | undefined,
): void {
  dataset?.writeDataPoint({
    // The platform samples each value of the index on its own, so a busy cell does not hide the others.
    indexes: [principal?.cell ?? principal?.role ?? "none"],
    blobs: [
      route,
      knownMethod(method),
      code,
      reason ?? "",
      principal?.role ?? "",
      principal?.cell ?? "",
      principal?.keyId ?? "",
    ],
    doubles: [status, Date.now() - startedMs],
  });
}
