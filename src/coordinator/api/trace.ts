import { v4 as newUuid } from "uuid";
import type { Principal } from "../auth/principal.ts";
import type { ErrorCode, Reason } from "../kernel/refusal.ts";
import type { logEvent } from "../log.ts";
import { parseTraceparent, type TraceContext } from "../tracing/trace-context.ts";
import type { Work } from "../tracing/tracer.ts";

/** The facts about a request for its log line and its answer's headers. */
export interface Trace {
  /** Always made here, so that no caller chooses which id its request has in the log. */
  requestId: string;
  /** The id that the caller sent. Only the log has it. */
  callerRequestId?: string;
  /** The caller's span. */
  parent?: TraceContext;
  /** The caller's trace, or a new one. */
  traceId: string;
  /** The request's span. */
  spanId: string;
  /** Present if the request is traced. */
  work?: Work;
  startedMs: number;
  route: string;
  code: ErrorCode | "OK";
  reason?: Reason;
  principal?: Principal;
}

/**
 * Keeps the caller's request id if it is safe in a log, and continues the caller's trace. The ids of a new
 * trace and of the request's span are digits of the request's own id, so whoever has the answer knows them.
 */
export function beginTrace(given?: string, traceparent?: string): Trace {
  const isSafe = given !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(given);
  const requestId = newUuid();
  const digits = requestId.replaceAll("-", "");
  const parent = parseTraceparent(traceparent);
  return {
    requestId,
    ...(isSafe ? { callerRequestId: given } : {}),
    ...(parent === undefined ? {} : { parent }),
    traceId: parent?.traceId ?? digits,
    spanId: digits.slice(-16),
    startedMs: Date.now(),
    route: "none",
    code: "OK",
  };
}

/** The ids of a request, for a line in the log. */
export const loggedIds = ({
  requestId,
  callerRequestId,
  traceId,
  spanId,
}: Pick<Trace, "requestId" | "callerRequestId" | "traceId" | "spanId">): Record<string, string> => ({
  request_id: requestId,
  ...(callerRequestId === undefined ? {} : { caller_request_id: callerRequestId }),
  trace_id: traceId,
  span_id: spanId,
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
    method: knownMethod(method),
    status,
    code,
    ...(reason === undefined ? {} : { reason }),
    ...(principal === undefined ? {} : { role: principal.role, key_id: principal.keyId }),
    ...(principal?.cell == null ? {} : { cell: principal.cell }),
    ...loggedIds(ids),
    duration_ms: Date.now() - startedMs,
  });
}

export const knownMethod = (method: string): string => (METHODS.has(method) ? method : "other");

/** Known methods. Others are logged as "other", because they are the caller's own text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
