import { v4 as newUuid } from "uuid";
import type { Principal } from "../auth/principal.ts";
import type { ErrorCode, Reason } from "../core/refusal.ts";
import type { logEvent } from "../log.ts";

/** The facts about a request for its log line and its answer's headers. */
export interface Trace {
  requestId: string;
  startedMs: number;
  route: string;
  code: ErrorCode | "OK";
  reason?: Reason;
  principal?: Principal;
}

/** Keeps the caller's request id if it is safe in headers, logs and pages. Otherwise makes one. */
export function beginTrace(given: string | undefined): Trace {
  const requestId = given !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : newUuid();
  return { requestId, startedMs: Date.now(), route: "none", code: "OK" };
}

/**
 * Logs one line per request. It never contains a path, a name or a key, because names may be private and keys
 * are secret.
 */
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

/** Known methods. Others are logged as "other", because they are the caller's own text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
