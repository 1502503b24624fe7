import { describeFailure, unknown, type Answer, type Refused, type Unknown } from "./answer.ts";
import { abortAfter, pause, type AttemptAbort } from "./attempt-abort.ts";
import { callHook, type Hooks } from "./hooks.ts";
import { readLines, type Body } from "./read-lines.ts";
import type { OperationId } from "./operation.ts";
import { readProblem } from "./problem.ts";
import { checkShape, type Shape } from "./shape.ts";

/** The part of the standard `fetch` that is needed. */
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
  /** Needed by exports only, which are read as they come. */
  body?: Body | null | undefined;
}

export interface ConnectionOptions {
  /** Of the coordinator, without a path. */
  url: string;
  /** Or a function that is asked before every try, so that a key can be replaced while the process runs. */
  key: string | (() => string | Promise<string>);
  /** The platform's own by default. */
  fetch?: Fetch | undefined;
  /** For a call with all its tries: 10 s by default. */
  deadlineMs?: number | undefined;
  /** For one try. 6 s by default, longer than the coordinator's own deadline for a begin (5 s), so that its answer is preferred over a guess. */
  attemptMs?: number | undefined;
  /** After the first try, where the outcome stays safe: 4 by default. */
  retries?: number | undefined;
  /** The longest pause before the second try: 100 ms by default. It doubles with each further one, up to 2 s, and is drawn at random up to that (full jitter). */
  backoffMs?: number | undefined;
  /** Ends every call at once. */
  signal?: AbortSignal | undefined;
  /** Sent with every request, such as a `traceparent`. */
  headers?: (() => Record<string, string>) | undefined;
  hooks?: Hooks | undefined;
}

export interface CallOptions {
  /** For the call with all its tries, instead of the client's. */
  deadlineMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface Call extends CallOptions {
  operation: OperationId;
  method: string;
  /** With the query, percent-encoded. */
  path: string;
  /** JSON that was made once: what the caller does to its objects meanwhile must not make another batch of a repeated begin. */
  body?: string | undefined;
  /** An answer that is not of it is an unknown outcome, never an empty one. */
  shape: Shape;
  /** A call that does its work again when it is sent again is never repeated. */
  isRepeatable: boolean;
}

/** What a line of an answer is: something to give, the end, or (undefined) nothing that the caller needs to see. */
export type LineResult<Item, End> = { item: Item } | { end: Answer<End> } | undefined;

/** A request that is under way. */
interface Attempt {
  abort: AttemptAbort;
  startedMs: number;
  isSent: boolean;
  /** 0: none yet. */
  status: number;
}

const MAX_BACKOFF_MS = 2_000;
/** A try that is cut off at once would only add load. */
const MIN_ATTEMPT_MS = 20;

/** Calls the coordinator, and calls again while the outcome is unknown and time is left. */
export class Connection {
  readonly #url: string;
  readonly #options: ConnectionOptions;
  readonly #fetch: Fetch;

  constructor(options: ConnectionOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#options = options;
    // Wrapped, because the platform's fetch must not be called as a method of something else.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  async call<T>(call: Call): Promise<Answer<T>> {
    const { deadlineMs = 10_000, attemptMs = 6_000 } = this.#options;
    const end = performance.now() + (call.deadlineMs ?? deadlineMs);
    if (this.#isCancelled(call)) return this.#cancelled(call, "cancelled before it was sent", true);
    let isUncertain = false;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#attempt<T>(call, attempt, Math.min(attemptMs, end - performance.now()));
      if (answer.kind === "ok") return answer;
      isUncertain ||= answer.kind === "unknown" && !answer.outcomeKnown;
      const stopped = await this.retry(call, answer, attempt, end);
      // An earlier try may still be on its way, and be carried out after this answer.
      if (stopped !== undefined) return isUncertain ? { ...stopped, outcomeKnown: false } : stopped;
    }
  }

  /**
   * One try at an answer that comes line by line: gives the items that `take` finds, and ends with what came of it. Every line has `attemptMs` to
   * come. How long the caller takes over one is up to the caller, and one that leaves ends the request.
   */
  async *lines<Item, End>(
    call: Call,
    attempt: number,
    read: (line: unknown) => LineResult<Item, End>,
  ): AsyncGenerator<Item, Answer<End>, undefined> {
    const { attemptMs = 6_000 } = this.#options;
    const current = this.#begin(call, attempt, attemptMs);
    const { abort } = current;
    let answer: Answer<End> = this.#cancelled(call, "its reader has left", false);
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
      return (answer = unknown(`${call.operation}: the answer was broken off`, { status: response.status }));
    } catch (error) {
      return (answer = this.#failed(call, current, error));
    } finally {
      this.#end(call, attempt, current, answer);
    }
  }

  /** Waits before another try. Undefined: it is time for it; else what to end with, because there is to be none. */
  async retry(
    call: Call,
    answer: Refused | Unknown,
    attempt: number,
    end = Infinity,
  ): Promise<Refused | Unknown | undefined> {
    const waitMs = this.#waitMs(call, answer, attempt);
    if (waitMs === undefined || performance.now() + waitMs + MIN_ATTEMPT_MS >= end) return answer;
    callHook(this.#options.hooks?.onRetry, {
      operation: call.operation,
      attempt,
      waitMs,
      why: describeFailure(answer),
    });
    await pause(waitMs, [this.#options.signal, call.signal]);
    return this.#isCancelled(call) ? this.#cancelled(call, "cancelled between two tries", true) : undefined;
  }

  /** Undefined: no further try. */
  #waitMs(call: Call, answer: Refused | Unknown, attempt: number): number | undefined {
    const { retries = 4, backoffMs = 100 } = this.#options;
    if (!call.isRepeatable || attempt > retries || this.#isCancelled(call)) return undefined;
    // Of the refusals only a limit passes by itself. That other leases hold a name is for the caller to hear, who may want another name.
    if (answer.kind === "refused" && (answer.code !== "RESOURCE_EXHAUSTED" || !answer.retryable))
      return undefined;
    const longest = Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (attempt - 1));
    // On top of what the coordinator asks for, so that those who were told the same do not come back together.
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
      const response = await this.#send(call, current);
      const answered = await current.abort.race(response.text());
      if (!isSuccess(response)) return readProblem(response.status, response.headers, answered);
      const json: unknown = JSON.parse(answered);
      checkShape(json, call.shape);
      return { kind: "ok", value: json as T };
    } catch (error) {
      return this.#failed(call, current, error);
    }
  }

  async #send({ method, path, body }: Call, current: Attempt): Promise<FetchResponse> {
    const { abort } = current;
    const headers = await abort.race(this.#headers(body !== undefined));
    const init = {
      method,
      headers,
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
    // Not the path: it may hold a name, and this goes into logs.
    return unknown(`${operation}: ${describe(reason)}`, { why, cause: reason, outcomeKnown: !isSent });
  }

  async #headers(hasBody: boolean): Promise<Record<string, string>> {
    const { key, headers } = this.#options;
    const given = typeof key === "string" ? key : await key();
    // An error of the platform's would quote it.
    if (!isKey(given)) throw new TypeError("the key is not one line of visible ASCII");
    const more = Object.entries(headers?.() ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
    return {
      ...(Object.fromEntries(more) as Record<string, string>),
      authorization: `Bearer ${given}`,
      accept: "application/json",
      ...(hasBody ? { "content-type": "application/json" } : {}),
    };
  }
}

const isSuccess = ({ status }: FetchResponse): boolean => status >= 200 && status < 300;

export const isKey = (given: unknown): given is string =>
  typeof given === "string" && /^[\x21-\x7e]+$/.test(given);

/** The cause says what `fetch failed` leaves out. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error && error.cause.message !== "" ? ` (${error.cause.message})` : "";
  return `${error.name}: ${error.message}${cause}`;
}
