import { describeFailure, messageOf, unknown, type Answer, type Refused, type Unknown } from "./answer.ts";
import { abortAfter, pause, type AttemptAbort } from "./attempt-abort.ts";
import { callHook, type Hooks, type OperationId } from "./hooks.ts";
import { headerOf, HISTORY_HEADER, type LedgerHistory, type LedgerPoint } from "./ledger-history.ts";
import { checkShape, readProblem, type Shape } from "./problem.ts";

/** The part of a standard `ReadableStream` of bytes that the client needs. */
export interface Body {
  getReader(): {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

/**
 * Yields the lines of a body as they arrive. Ignores text after the last line feed, because the line is not
 * complete. The timer runs only while it waits for a line.
 */
async function* readLines(
  body: Body | null | undefined,
  abort: AttemptAbort,
): AsyncGenerator<string, void, undefined> {
  const reader = body?.getReader();
  if (reader === undefined) throw new TypeError("the answer of `fetch` must have a `body` that is a stream");
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let begun = "";
  try {
    for (;;) {
      const { done, value } = await abort.race(reader.read());
      if (done) return;
      const lines = (begun + decoder.decode(value, { stream: true })).split("\n");
      begun = lines.pop() ?? "";
      for (const line of lines) {
        abort.stopTimer();
        yield line;
        abort.signal.throwIfAborted();
        abort.restartTimer();
      }
    }
  } finally {
    // Whether the rest can be cancelled does not matter.
    reader.cancel().catch(() => {});
  }
}

/** The part of the standard `fetch` that the client needs. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    signal: AbortSignal;
    redirect: "manual";
    body?: string;
  },
) => Promise<FetchResponse>;

export interface FetchResponse {
  status: number;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
  /** Only exports need it. They read the answer as a stream. */
  body?: Body | null | undefined;
}

export interface ConnectionOptions {
  /** The coordinator's URL, without a path. */
  url: string;
  /**
   * The key, or a function that returns it. The client calls the function before every attempt, so a running
   * process can change its key.
   */
  key: string | (() => string | Promise<string>);
  /** The platform's `fetch` by default. */
  fetch?: Fetch | undefined;
  /** The time for a call with all its attempts: 10,000 ms by default. */
  deadlineMs?: number | undefined;
  /**
   * The time for one attempt: 6,000 ms by default. That is longer than the coordinator's own deadline for a
   * begin (5 s), so the client gets its answer instead of a timeout.
   */
  attemptMs?: number | undefined;
  /**
   * The most retries after the first attempt: 4 by default. Only calls that are safe to repeat are retried.
   */
  retries?: number | undefined;
  /**
   * The longest backoff before the first retry: 100 ms by default. It doubles with each retry, up to 2 s. The
   * actual backoff is random, up to this value (full jitter).
   */
  backoffMs?: number | undefined;
  /** Cancels every call of the client at once. */
  signal?: AbortSignal | undefined;
  /**
   * Returns the `traceparent` (W3C Trace Context) of the caller's span, for every request. A text that is not
   * valid is not sent, and an error that the function throws is ignored.
   */
  traceparent?: (() => string | undefined) | undefined;
  /** Returns headers for every request. */
  headers?: (() => Record<string, string>) | undefined;
  hooks?: Hooks | undefined;
}

export interface CallOptions {
  /** The time for the call with all its attempts, instead of the client's `deadlineMs`. */
  deadlineMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface Call extends CallOptions {
  operation: OperationId;
  method: string;
  /** With the query, percent-encoded. */
  path: string;
  /**
   * JSON that was written once. If the caller changes its objects meanwhile, a repeated begin still has the
   * same batch.
   */
  body?: string | undefined;
  /** An answer of another shape is an unknown outcome. */
  shape: Shape;
  /** False for calls that would do their work twice. */
  isRepeatable: boolean;
  /** True for calls that change nothing: when one fails, there is nothing that may have been carried out. */
  isRead: boolean;
  /** How much longer than other calls it may take, because it waits at the coordinator (B11). */
  extraMs?: number | undefined;
  /** Of calls about leases: what the cell has seen of its ledger (L7). */
  history?: LedgerHistory | undefined;
}

/** The meaning of a line: an item, the end, or undefined when the caller does not need it. */
export type LineResult<Item, End> = { item: Item } | { end: Answer<End> } | undefined;

/** A request that is under way. */
interface Attempt {
  abort: AttemptAbort;
  startedMs: number;
  isSent: boolean;
  /** 0 while there is no answer. */
  status: number;
}

const MAX_BACKOFF_MS = 2_000;
/** With less time left, an attempt would only add load. */
const MIN_ATTEMPT_MS = 20;

/** Calls the coordinator, and retries while the outcome is unknown and time is left. */
export class Connection {
  readonly #url: string;
  readonly #options: ConnectionOptions;
  readonly #fetch: Fetch;

  constructor(options: ConnectionOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#options = options;
    // The platform's `fetch` must not be called as a method of another object.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** The time for a call that has no deadline of its own. */
  get deadlineMs(): number {
    return this.#options.deadlineMs ?? 10_000;
  }

  async call<T>(call: Call): Promise<Answer<T>> {
    const { attemptMs = 6_000 } = this.#options;
    const { extraMs = 0 } = call;
    const end = performance.now() + (call.deadlineMs ?? this.deadlineMs) + extraMs;
    if (this.#isCancelled(call)) return this.#cancelled(call, "cancelled before it was sent", true);
    let isUncertain = false;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#attempt<T>(
        call,
        attempt,
        Math.min(attemptMs + extraMs, end - performance.now()),
      );
      if (answer.kind === "ok") return answer;
      isUncertain ||= answer.kind === "unknown" && !answer.outcomeKnown && !call.isRead;
      const stopped = await this.retry(call, answer, attempt, end);
      // The coordinator may still carry out an earlier attempt after this answer.
      if (stopped !== undefined) return isUncertain ? { ...stopped, outcomeKnown: false } : stopped;
    }
  }

  /**
   * Makes one attempt at an answer that comes line by line: yields the items that `read` finds, and returns
   * the outcome. Each line must arrive within `attemptMs`. The time that the caller takes for an item does
   * not count. If the caller leaves the loop, the request ends.
   */
  async *lines<Item, End>(
    call: Call,
    attempt: number,
    read: (line: unknown) => LineResult<Item, End>,
  ): AsyncGenerator<Item, Answer<End>, undefined> {
    const { attemptMs = 6_000 } = this.#options;
    const current = this.#begin(call, attempt, attemptMs);
    const { abort } = current;
    let answer: Answer<End> = this.#cancelled(call, "the caller left the loop", false);
    try {
      const response = await this.#send(call, current);
      if (!isSuccess(response))
        return (answer = readProblem(response.status, response.headers, await abort.race(response.text())));
      for await (const line of readLines(response.body, abort)) {
        const result = read(JSON.parse(line));
        if (result === undefined) continue;
        if ("end" in result) return (answer = result.end);
        yield result.item;
      }
      return (answer = unknown(`${call.operation}: the answer ended early`, { status: response.status }));
    } catch (error) {
      return (answer = this.#failed(call, current, error));
    } finally {
      this.#end(call, attempt, current, answer);
    }
  }

  /**
   * Waits for the next attempt. Returns undefined when it may start, or the final outcome when there is none.
   */
  async retry(
    call: Call,
    answer: Refused | Unknown,
    attempt: number,
    end = Infinity,
  ): Promise<Refused | Unknown | undefined> {
    const waitMs = this.#waitMs(call, answer, attempt);
    if (waitMs === undefined || performance.now() + waitMs + MIN_ATTEMPT_MS >= end)
      return call.isRead ? { ...answer, outcomeKnown: true } : answer;
    callHook(this.#options.hooks?.onRetry, {
      operation: call.operation,
      attempt,
      waitMs,
      error: describeFailure(answer),
    });
    await pause(waitMs, [this.#options.signal, call.signal]);
    return this.#isCancelled(call)
      ? this.#cancelled(call, "cancelled between two attempts", true)
      : undefined;
  }

  /** The backoff, or undefined for no further attempt. */
  #waitMs(call: Call, answer: Refused | Unknown, attempt: number): number | undefined {
    const { retries = 4, backoffMs = 100 } = this.#options;
    if (!call.isRepeatable || attempt > retries || this.#isCancelled(call)) return undefined;
    // Of the refusals, only a limit passes by itself. When other leases hold a name, the caller decides: it
    // may want another name.
    if (answer.kind === "refused" && (answer.code !== "RESOURCE_EXHAUSTED" || !answer.retryable))
      return undefined;
    const longest = Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (attempt - 1));
    // Random, on top of the coordinator's `Retry-After`, so that clients with the same advice do not return
    // at once.
    return (answer.retryAfterMs ?? 0) + Math.random() * longest;
  }

  #isCancelled({ signal }: Call): boolean {
    return signal?.aborted === true || this.#options.signal?.aborted === true;
  }

  #cancelled({ signal }: Call, text: string, outcomeKnown: boolean): Unknown {
    const owner = [signal, this.#options.signal].find((each) => each?.aborted === true);
    return unknown(text, { why: "cancelled", cause: owner?.reason, outcomeKnown });
  }

  async #attempt<T>(call: Call, attempt: number, timeoutMs: number): Promise<Answer<T>> {
    const current = this.#begin(call, attempt, timeoutMs);
    const answer = await this.#once<T>(call, current);
    this.#end(call, attempt, current, answer);
    return answer;
  }

  #begin(call: Call, attempt: number, timeoutMs: number): Attempt {
    callHook(this.#options.hooks?.onRequest, { operation: call.operation, attempt });
    return {
      abort: abortAfter(timeoutMs, [this.#options.signal, call.signal]),
      startedMs: performance.now(),
      isSent: false,
      status: 0,
    };
  }

  #end(
    { operation }: Call,
    attempt: number,
    { abort, startedMs, status }: Attempt,
    answer: Answer<unknown>,
  ): void {
    abort.release();
    const { kind } = answer;
    const more =
      answer.kind === "ok" || answer.requestId === undefined ? {} : { requestId: answer.requestId };
    const code = kind === "refused" ? { code: answer.code } : {};
    callHook(this.#options.hooks?.onResponse, {
      operation,
      attempt,
      kind,
      durationMs: performance.now() - startedMs,
      ...(status === 0 ? {} : { status }),
      ...code,
      ...more,
    });
  }

  async #once<T>(call: Call, current: Attempt): Promise<Answer<T>> {
    try {
      const seen = call.history?.next();
      const response = await this.#send(call, current, seen);
      const answered = await current.abort.race(response.text());
      if (!isSuccess(response)) return readProblem(response.status, response.headers, answered);
      call.history?.answered(seen, response.headers.get(HISTORY_HEADER));
      const json: unknown = JSON.parse(answered);
      checkShape(json, call.shape);
      return { kind: "ok", value: json as T };
    } catch (error) {
      return this.#failed(call, current, error);
    }
  }

  async #send({ method, path, body }: Call, current: Attempt, seen?: LedgerPoint): Promise<FetchResponse> {
    const { abort } = current;
    const headers = await abort.race(this.#headers(body !== undefined));
    const init = {
      method,
      headers: seen === undefined ? headers : { ...headers, [HISTORY_HEADER]: headerOf(seen) },
      signal: abort.signal,
      redirect: "manual",
      ...(body === undefined ? {} : { body }),
    } as const;
    current.isSent = true;
    const response = await abort.race(this.#fetch(`${this.#url}${path}`, init));
    current.status = response.status;
    return response;
  }

  #failed({ operation }: Call, { abort, isSent }: Attempt, error: unknown): Unknown {
    const why = abort.why() ?? "unavailable";
    const reason: unknown = abort.why() === undefined ? error : abort.signal.reason;
    // The path may hold a name, so it must not get into logs.
    return unknown(`${operation}: ${describe(reason)}`, { why, cause: reason, outcomeKnown: !isSent });
  }

  async #headers(hasBody: boolean): Promise<Record<string, string>> {
    const { key, headers, traceparent } = this.#options;
    const given = typeof key === "string" ? key : await key();
    // The platform's own error would quote the key.
    if (!isKey(given)) throw new TypeError("`key` must be one line of visible ASCII");
    const more = Object.entries(headers?.() ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
    return {
      ...(Object.fromEntries(more) as Record<string, string>),
      ...traceHeader(traceparent),
      authorization: `Bearer ${given}`,
      accept: "application/json",
      ...(hasBody ? { "content-type": "application/json" } : {}),
    };
  }
}

const isSuccess = ({ status }: FetchResponse): boolean => status >= 200 && status < 300;

export const isKey = (given: unknown): given is string =>
  typeof given === "string" && /^[\x21-\x7e]+$/.test(given);

/** Telemetry must not change the outcome of a call. */
function traceHeader(traceparent: ConnectionOptions["traceparent"]): Record<string, string> {
  try {
    const given = traceparent?.();
    return given !== undefined && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(given)
      ? { traceparent: given }
      : {};
  } catch {
    return {};
  }
}

/** The message with its cause, because `fetch failed` alone does not name one. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return messageOf(error);
  const cause = error.cause instanceof Error && error.cause.message !== "" ? ` (${error.cause.message})` : "";
  return `${error.name}: ${error.message}${cause}`;
}
