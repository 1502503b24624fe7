import { v4 as newUuid } from "uuid";
import type { Principal } from "../auth/principal.ts";
import type { ErrorCode, Reason } from "../core/refusal.ts";
import type { logEvent } from "../log.ts";

/** What one request's log line and its answer's headers are made of. */
export interface Trace {
  requestId: string;
  startedMs: number;
  route: string;
  code: ErrorCode | "OK";
  reason?: Reason;
  principal?: Principal;
}

/** A request id of the caller's is kept when it is harmless in headers, logs and pages. */
export function beginTrace(given: string | undefined): Trace {
  const requestId = given !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : newUuid();
  return { requestId, startedMs: Date.now(), route: "none", code: "OK" };
}

/** One line per request. Never a path, a name or a key: those are the cells' own business. */
export function logRequest(
  { requestId, startedMs, route, code, reason, principal }: Trace,
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
    request_id: requestId,
    duration_ms: Date.now() - startedMs,
  });
}

/** A method is the caller's own text too. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
