import { v4 as newUuid } from "uuid";
import type { Principal } from "../auth/principal.ts";
import type { ErrorCode, Reason } from "../kernel/refusal.ts";
import type { logEvent } from "../log.ts";
import { parseTraceparent, type TraceContext, Tracer, type Work, Sampler } from "../tracing/tracer.ts";
import type { Limits } from "../../common/limits.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { SpanExporter } from "../tracing/exporter.ts";
import type { TracingSettings } from "../tracing/settings.ts";

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

const knownMethod = (method: string): string => (METHODS.has(method) ? method : "other");

/** Known methods. Others are logged as "other", because they are the caller's own text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

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

/** Records the spans of requests. */
export class RequestTracing {
  readonly tracer: Tracer;
  readonly #exporter: SpanExporter;
  readonly #sampler: Sampler;

  constructor(
    settings: TracingSettings,
    { callerTracesPerS }: Pick<Limits, "callerTracesPerS">,
    clock: WallClock,
    log: typeof logEvent,
  ) {
    this.#exporter = new SpanExporter("worker", settings, clock, log);
    this.#sampler = new Sampler(settings.share, callerTracesPerS, clock);
    this.tracer = new Tracer(this.#exporter, () => clock.now());
  }

  /**
   * Begins the request's span, if the request is traced. To be called once it is known whether the caller has
   * a valid key.
   */
  begin(trace: Trace, waitUntil: WaitUntil): Work | undefined {
    const { traceId, spanId, parent, principal, route } = trace;
    if (!this.#sampler.isTraced(parent?.isSampled, principal !== undefined)) return undefined;
    const context = { traceId, spanId, isSampled: true };
    trace.work = this.tracer.beginRequest(context, parent?.spanId, route, trace.startedMs);
    this.#exporter.wake(waitUntil);
    return trace.work;
  }
}

/** Ends the request's span, if it has one. */
export function endRequest(trace: Trace, method: string, status: number): void {
  const { work, code, reason, principal, requestId } = trace;
  work?.end(
    {
      "http.request.method": knownMethod(method),
      "http.response.status_code": status,
      "leasehold.code": code,
      ...(reason === undefined ? {} : { "leasehold.reason": reason }),
      ...(principal === undefined ? {} : { "leasehold.role": principal.role }),
      ...(principal?.cell == null ? {} : { "leasehold.cell": principal.cell }),
      "leasehold.request_id": requestId,
    },
    status >= 500,
  );
}

/**
 * Returns whether a request gets a line in the log: every failure of the service and every change by an
 * operator does. Of the others, it is a share at random. A caller must not be able to choose its requests
 * into the log or out of it, so nothing that it sends has a say.
 */
export function isLogged(
  { principal }: Pick<Trace, "principal">,
  method: string,
  status: number,
  share: number,
): boolean {
  if (status >= 500) return true;
  if (principal?.role === "operator" && !READS.has(method)) return true;
  return Math.random() < share;
}

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
