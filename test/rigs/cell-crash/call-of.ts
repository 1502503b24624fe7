import type { Operation } from "./points.ts";

/** The operation and the lease of a request to the coordinator. */
export function callOf(method: string, path: string): { operation: Operation; uuid: string } {
  const [, uuid = "", decision] =
    /^\/v1\/cells\/[^/]+\/leases\/([^/]+)(?:\/(commit|rollback))?$/.exec(path) ?? [];
  if (uuid === "") return { operation: "other", uuid };
  if (decision === "commit" || decision === "rollback") return { operation: decision, uuid };
  return { operation: method === "PUT" ? "begin" : "get", uuid };
}
