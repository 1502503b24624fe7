import type { logEvent } from "../log.ts";
import type { Failure } from "./problem.ts";
import type { Trace } from "./trace.ts";

/** A misconfigured deployment says which variable is wrong; nothing else of an unexpected error leaves the building. */
export class Misconfigured extends Error {}

/** What an error says may quote a name; from the first quotation mark on it is left out. Where it happened is always told. */
function harmless(error: unknown): string {
  if (!(error instanceof Error)) return "not an error";
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message.split('"')[0]?.slice(0, 200)}`, ...frames].join("\n");
}

export function logFault(error: unknown, { requestId, route }: Trace, log: typeof logEvent): Failure {
  log("fault", { request_id: requestId, route, message: harmless(error) });
  if (error instanceof Misconfigured) return { code: "UNAVAILABLE", detail: error.message };
  return { code: "INTERNAL", detail: "something went wrong here; the request id finds it in the log" };
}
