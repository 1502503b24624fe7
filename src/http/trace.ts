import { v4 as newUuid } from "uuid";
import type { Principal } from "../auth/principal.ts";
import type { ErrorCode, Reason } from "../core/refusal.ts";
import type { logEvent } from "../log.ts";

/** The facts about a request for its log line and its answer's headers. */
export interface Trace {
  /** Always made here, so that no caller chooses which id its request has in the log. */
  requestId: string;
  /** The id that the caller sent. Only the log has it. */
  callerRequestId?: string;
  startedMs: number;
  route: string;
  code: ErrorCode | "OK";
  reason?: Reason;
  principal?: Principal;
}

/** Keeps the caller's request id if it is safe in a log. */
export function beginTrace(given: string | undefined): Trace {
  const isSafe = given !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(given);
  return {
    requestId: newUuid(),
    ...(isSafe ? { callerRequestId: given } : {}),
    startedMs: Date.now(),
    route: "none",
    code: "OK",
  };
}

/** Both ids of a request, for a line in the log. */
export const loggedIds = ({
  requestId,
  callerRequestId,
}: Pick<Trace, "requestId" | "callerRequestId">): Record<string, string> => ({
  request_id: requestId,
  ...(callerRequestId === undefined ? {} : { caller_request_id: callerRequestId }),
});

/**
 * Logs one line per request. It never contains a path, a name or a key, because names may be private and keys
 * are secret.
 */
export function logRequest(
  { startedMs, route, code, reason, principal, ...ids }: Trace,
  method: string,
  status: number,
  log: typeof logEvent,
): void {
  log("request", {
    route,
    method: METHODS.has(method) ? method : "other",
    status,
    code,
    ...(reason === undefined ? {} : { reason }),
    ...(principal === undefined ? {} : { role: principal.role, key_id: principal.keyId }),
    ...(principal?.cell == null ? {} : { cell: principal.cell }),
    ...loggedIds(ids),
    duration_ms: Date.now() - startedMs,
  });
}

/** Known methods. Others are logged as "other", because they are the caller's own text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
