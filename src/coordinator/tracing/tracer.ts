import { MAX_TRACES } from "../kernel/traces.ts";
import type { WaitUntil } from "../runtime.ts";
import type { SpanExporter } from "./exporter.ts";
import type { Attributes, Span, SpanKind } from "./span.ts";
import { formatTraceparent, parseTraceparent, type TraceContext } from "./trace-context.ts";

/** One piece of work, with a span in each of the traces that it belongs to. */
export interface Work {
  /** The spans as `traceparent` headers, for the messages that the work sends. */
  readonly traces: readonly string[];
  /** Ends the spans. */
  end(attributes: Attributes, isError: boolean): void;
}

/** Records the spans of one part. */
export class Tracer {
  readonly #exporter: SpanExporter;
  readonly #now: () => number;
  readonly #keepAlive: WaitUntil | undefined;

  /**
   * @param keepAlive undefined in a Worker, whose requests must call `SpanExporter.wake` themselves
   */
  constructor(exporter: SpanExporter, now: () => number, keepAlive?: WaitUntil) {
    this.#exporter = exporter;
    this.#now = now;
    this.#keepAlive = keepAlive;
  }

  /** Begins the span of a request, which arrived at `startedAtMs`. Its id is that of `context`. */
  beginRequest(
    context: TraceContext,
    parentSpanId: string | undefined,
    name: string,
    startedAtMs: number,
  ): Work {
    return this.#begin([{ context, parentSpanId }], name, "server", {}, startedAtMs);
  }

  /** Begins work with a span below each of the spans in `traces`. Ignores what is no `traceparent`. */
  begin(traces: readonly string[], name: string, kind: SpanKind, attributes: Attributes): Work {
    const below = traces.slice(0, MAX_TRACES).flatMap((text) => {
      const parent = parseTraceparent(text);
      return parent === undefined
        ? []
        : [{ context: { ...parent, spanId: newSpanId() }, parentSpanId: parent.spanId }];
    });
    const work = this.#begin(below, name, kind, attributes);
    if (this.#keepAlive !== undefined) this.#exporter.wake(this.#keepAlive);
    return work;
  }

  #begin(
    begun: readonly { context: TraceContext; parentSpanId: string | undefined }[],
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    startedAtMs = this.#now(),
  ): Work {
    const spans = begun.flatMap(({ context, parentSpanId }): Span[] => {
      const { traceId, spanId } = context;
      const more = { name, kind, startedAtMs, endedAtMs: undefined, attributes, isError: false };
      const span = { traceId, spanId, parentSpanId, ...more };
      return this.#exporter.open(span) ? [span] : [];
    });
    return {
      traces: begun.map(({ context }) => formatTraceparent(context)),
      end: (found, isError) => {
        // A clock that went back must not make a span end before it begins.
        const endedAtMs = Math.max(startedAtMs, this.#now());
        for (const span of spans) {
          Object.assign(span, { endedAtMs, isError, attributes: { ...attributes, ...found } });
          this.#exporter.finish(span);
        }
      },
    };
  }
}

const ZERO = "0".repeat(16);

function newSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const id = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return id === ZERO ? newSpanId() : id;
}
