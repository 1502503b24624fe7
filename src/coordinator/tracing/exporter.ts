import type { logEvent } from "../log.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";

/** Where spans are sent. */
export interface Collector {
  /** The URL that takes `ExportTraceServiceRequest` messages. */
  url: string;
  /** Headers for the collector, such as its key. */
  headers: Readonly<Record<string, string>>;
}

/** How long spans wait for others that share their request. */
const BATCH_MS = 1_000;
/** Some 500 bytes each. */
const MAX_BATCH = 500;
/** The finished spans, and the open ones, that are kept in memory. */
const MAX_SPANS = 2_000;
const TIMEOUT_MS = 5_000;
/** The pause after a failed request. It doubles with each further one. */
const FIRST_PAUSE_MS = 5_000;
const MAX_PAUSE_MS = 60_000;
/** A call that has not returned after this time is exported as failed. All deadlines are shorter. */
const MAX_SPAN_MS = 65_000;
/** A loss is logged at most this often. */
const LOG_EVERY_MS = 60_000;

interface Run {
  /** When it was last seen to work. */
  seenAtMs: number;
}

/**
 * Sends finished spans to a collector, some at a time. Nobody waits for it: while the collector is slow or
 * cannot be reached, spans wait in memory, up to a limit. Further ones and those of a failed request are lost
 * and counted.
 */
export class SpanExporter {
  readonly #part: string;
  readonly #collector: Collector;
  readonly #clock: WallClock;
  readonly #log: typeof logEvent;
  readonly #open = new Set<Span>();
  #finished: Span[] = [];
  #run: Run | undefined;
  #notBeforeMs = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #lost = 0;
  #loggedAtMs = Number.NEGATIVE_INFINITY;

  /** @param part the part of the deployment that records the spans */
  constructor(part: string, collector: Collector, clock: WallClock, log: typeof logEvent) {
    this.#part = part;
    this.#collector = collector;
    this.#clock = clock;
    this.#log = log;
  }

  /** The spans that were lost since this exporter was made. */
  get lost(): number {
    return this.#lost;
  }

  /** Keeps a span until it ends. Returns false if there is no room, and then the span is lost. */
  open(span: Span): boolean {
    if (this.#open.size < MAX_SPANS) {
      this.#open.add(span);
      return true;
    }
    this.#lose(1, "too many open spans");
    return false;
  }

  /** Takes a span that has ended. Does nothing if it was exported before, as failed. */
  finish(span: Span): void {
    if (!this.#open.delete(span)) return;
    if (this.#finished.length < MAX_SPANS) this.#finished.push(span);
    else this.#lose(1, "too many spans for the collector");
  }

  /**
   * Makes sure that the spans are sent some time. In a Worker, each request calls this, because the runtime
   * may drop the work of a request that has ended, in spite of `waitUntil`.
   */
  wake(waitUntil: WaitUntil): void {
    const { seenAtMs } = this.#run ?? {};
    const now = this.#clock.now();
    // If the clock went back, nothing tells whether the run still works. Two of them do no harm.
    const isAlive = seenAtMs !== undefined && now >= seenAtMs && now - seenAtMs < 2 * (BATCH_MS + TIMEOUT_MS);
    if (isAlive || this.#isPaused(now)) return;
    const run: Run = { seenAtMs: now };
    this.#run = run;
    waitUntil(this.#send(run));
  }

  /** Runs until there are no spans left, or the collector cannot be reached. */
  async #send(run: Run): Promise<void> {
    while (this.#run === run) {
      await this.#sleep(BATCH_MS);
      const now = this.#clock.now();
      run.seenAtMs = now;
      this.#endLate(now);
      if (this.#isPaused(now) || this.#open.size + this.#finished.length === 0) break;
      const batch = this.#finished.splice(0, MAX_BATCH);
      if (batch.length > 0) await this.#post(batch);
    }
    if (this.#run === run) this.#run = undefined;
  }

  async #post(batch: readonly Span[]): Promise<void> {
    const { url, headers } = this.#collector;
    let failure: string | undefined;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: otlpRequest(batch, this.#part, this.#lost),
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (response.status < 200 || response.status >= 300) failure = `status ${response.status}`;
    } catch (error) {
      // The message could quote the URL.
      failure = error instanceof Error ? error.name : "not an error";
    }
    if (failure === undefined) {
      this.#pauseMs = FIRST_PAUSE_MS;
      return;
    }
    this.#notBeforeMs = this.#clock.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#lose(batch.length, failure);
  }

  /** Whether the last request has failed so recently that the next one has to wait. */
  #isPaused(nowMs: number): boolean {
    const leftMs = this.#notBeforeMs - nowMs;
    // If the clock went back, more is left than any pause takes.
    return leftMs > 0 && leftMs <= MAX_PAUSE_MS;
  }

  /** Ends the spans of calls that never returned. */
  #endLate(nowMs: number): void {
    for (const span of this.#open) {
      if (nowMs - span.startedAtMs < MAX_SPAN_MS) continue;
      span.endedAtMs = nowMs;
      span.isError = true;
      this.finish(span);
    }
  }

  #lose(spans: number, cause: string): void {
    this.#lost += spans;
    const now = this.#clock.now();
    if (Math.abs(now - this.#loggedAtMs) < LOG_EVERY_MS) return;
    this.#loggedAtMs = now;
    this.#log("spans_lost", { part: this.#part, lost_total: this.#lost, cause });
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resume) => this.#clock.after(delayMs, resume));
  }
}

/** The code of the OTLP enum. The other one that matters, "unset", is the default. */
const STATUS_ERROR = 2;

/**
 * Writes finished spans as an `ExportTraceServiceRequest` of OTLP/HTTP in JSON.
 *
 * @param part the part of the deployment that has recorded them
 * @param lostSpans those that this part has lost so far
 */
function otlpRequest(spans: readonly Span[], part: string, lostSpans: number): string {
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

/** The values of the OTLP enum. */
const spanKinds = { server: 2, client: 3 } as const;

export type SpanKind = keyof typeof spanKinds;

/** They have ids, codes and counts. They never have names, keys or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span, finished or not. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  attributes: Attributes;
  isError: boolean;
}
