import { spanKinds, type Attributes, type Span } from "./span.ts";

/** The code of the OTLP enum. The other one that matters, "unset", is the default. */
const STATUS_ERROR = 2;

/**
 * Writes finished spans as an `ExportTraceServiceRequest` of OTLP/HTTP in JSON.
 *
 * @param part the part of the deployment that has recorded them
 * @param lostSpans those that this part has lost so far
 */
export function otlpRequest(spans: readonly Span[], part: string, lostSpans: number): string {
  const resource = {
    attributes: attributesOf({
      "service.name": "leasehold",
      "leasehold.part": part,
      "leasehold.lost_spans": lostSpans,
    }),
  };
  const scopeSpans = [{ scope: { name: "leasehold" }, spans: spans.map(otlpSpan) }];
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] });
}

const otlpSpan = (span: Span): object => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
  name: span.name,
  kind: spanKinds[span.kind],
  startTimeUnixNano: nanoseconds(span.startedAtMs),
  endTimeUnixNano: nanoseconds(span.endedAtMs ?? span.startedAtMs),
  attributes: attributesOf(span.attributes),
  status: span.isError ? { code: STATUS_ERROR } : {},
});

/** A number of JavaScript cannot hold them exactly, so they are a text, as OTLP wants 64-bit numbers. */
const nanoseconds = (ms: number): string => `${Math.trunc(ms)}000000`;

const attributesOf = (attributes: Attributes): object[] =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));

function valueOf(value: string | number | boolean): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
