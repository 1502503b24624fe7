import { logEvent } from "../log.ts";
import type { Failure } from "./problem.ts";
import type { Trace } from "./trace.ts";

/** A misconfigured deployment says which variable is wrong; nothing else of an unexpected error leaves the building. */
export class Misconfigured extends Error {}

export function logFault(error: unknown, { requestId, route }: Trace): Failure {
  logEvent("fault", { request_id: requestId, route, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  if (error instanceof Misconfigured) return { code: "UNAVAILABLE", detail: error.message };
  return { code: "INTERNAL", detail: "something went wrong here; the request id finds it in the log" };
}
