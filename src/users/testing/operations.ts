import { routes, type RouteId } from "../../coordinator/api/contract.ts";
import { findRoute } from "../../coordinator/api/route-table.ts";

/**
 * The kind of a call. `list` reads a cell's leases. `records` reads a cell's names, in pages, as digests or
 * as an export. `other` is everything else, such as the calls of operators.
 */
export type Operation = (typeof operationNames)[number];

export const operationNames = [
  "begin",
  "commit",
  "rollback",
  "get",
  "list",
  "lookup",
  "records",
  "other",
] as const;

/** What the method and path of a call tell about it. */
export interface Addressed {
  operation: Operation;
  /** The cell in the path, if there is one. */
  cell: string | null;
  /** The lease in the path, in lower case. Null if there is none, such as for a begin without an id. */
  uuid: string | null;
}

const operations: Partial<Record<RouteId, Operation>> = {
  beginLease: "begin",
  beginLeaseWithNewId: "begin",
  commitLease: "commit",
  rollbackLease: "rollback",
  getLease: "get",
  listLeases: "list",
  getRecord: "lookup",
  lookupRecords: "lookup",
  listRecords: "records",
  exportRecords: "records",
  digestRecords: "records",
};

export function addressOf(method: string, url: string): Addressed {
  const route = findRoute(method, new URL(url).pathname);
  if (route === undefined) return { operation: "other", cell: null, uuid: null };
  const { id, parameters } = route;
  return {
    operation: operations[id] ?? "other",
    cell: parameters.get("cell") ?? null,
    uuid: routes[id].group === "leases" ? (parameters.get("uuid")?.toLowerCase() ?? null) : null,
  };
}
