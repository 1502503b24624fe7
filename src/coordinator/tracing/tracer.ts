import { MAX_TRACES } from "../kernel/traces.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import type { SpanExporter, Attributes, Span, SpanKind } from "./exporter.ts";

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

/** A span of a trace, as W3C Trace Context identifies it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}

const FORM = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
const SAMPLED = 1;

/**
 * Reads a `traceparent` header (W3C Trace Context, Level 1). Returns undefined if it is not valid. A later
 * version may have more fields, which are ignored.
 */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  // No version that exists is longer than 55 characters.
  if (header === undefined || header.length > 512) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(header) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;

/**
 * Decides which requests are traced. A request whose caller has sampled its trace is traced, too, but only
 * up to a rate: a caller must not be able to have everything exported.
 */
export class Sampler {
  readonly #share: number;
  readonly #callersPerS: number;
  readonly #now: () => number;
  #left: number;
  #countedAtMs: number;

  /**
   * @param share of the other requests, from 0 to 1
   * @param callersPerS the traces of callers that are respected in a second
   */
  constructor(share: number, callersPerS: number, { now }: Pick<WallClock, "now">) {
    this.#share = share;
    this.#callersPerS = callersPerS;
    this.#now = now;
    this.#left = callersPerS;
    this.#countedAtMs = now();
  }

  /**
   * @param isSampled whether the caller has sampled its trace; undefined if it has sent none
   * @param hasKey whether the caller has a valid key
   */
  isTraced(isSampled: boolean | undefined, hasKey: boolean): boolean {
    if (isSampled === false) return false;
    return (isSampled === true && hasKey && this.#take()) || Math.random() < this.#share;
  }

  #take(): boolean {
    const now = this.#now();
    const passedMs = Math.max(0, now - this.#countedAtMs);
    this.#countedAtMs = now;
    this.#left = Math.min(this.#callersPerS, this.#left + (passedMs / 1_000) * this.#callersPerS);
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
