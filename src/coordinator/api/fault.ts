import type { logEvent } from "../log.ts";
import type { Failure } from "./problem.ts";
import { loggedIds, type Trace } from "./trace.ts";

/**
 * Thrown when a variable is wrong. Its message, which names the variable, is answered to the caller. Messages
 * of other unexpected errors are only logged.
 */
export class Misconfigured extends Error {}

/**
 * The text of an error for the log. A message may quote a name, so it is cut at the first quotation mark. The
 * stack's frames are kept.
 */
function harmless(error: unknown): string {
  if (!(error instanceof Error)) return "not an error";
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message.split('"')[0]?.slice(0, 200)}`, ...frames].join("\n");
}

export function logFault(error: unknown, trace: Trace, log: typeof logEvent): Failure {
  log("fault", { ...loggedIds(trace), route: trace.route, message: harmless(error) });
  if (error instanceof Misconfigured) return { code: "UNAVAILABLE", detail: error.message };
  return {
    code: "INTERNAL",
    detail: "the coordinator failed unexpectedly; search its log for the request id",
  };
}
