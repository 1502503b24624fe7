import type { Limits } from "../../common/limits.ts";
import type { logEvent } from "../log.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { SpanExporter } from "../tracing/exporter.ts";
import { Sampler } from "../tracing/sampler.ts";
import type { TracingSettings } from "../tracing/settings.ts";
import { Tracer, type Work } from "../tracing/tracer.ts";
import { knownMethod, type Trace } from "./trace.ts";

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
