import { sentence, unknown, type Answer, type Refused, type Unknown } from "./answer.ts";
import { cutoff, pause, type Cutoff } from "./attempt-abort.ts";
import { tell, type Hooks } from "./hooks.ts";
import { linesOf, type Body } from "./read-lines.ts";
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
  tryMs?: number | undefined;
  /** After the first try, where the outcome stays safe: 4 by default. */
  retries?: number | undefined;
  /** The longest pause before the second try: 100 ms by default. It doubles with each further one, up to 2 s, and is drawn at random up to that (full jitter). */
  pauseMs?: number | undefined;
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
export type Taken<Item, End> = { item: Item } | { end: Answer<End> } | undefined;

/** A request that is under way. */
interface Try {
  cut: Cutoff;
  startedMs: number;
  isSent: boolean;
  /** 0: none yet. */
  status: number;
}

const MAX_PAUSE_MS = 2_000;
/** A try that is cut off at once would only add load. */
const LEAST_TRY_MS = 20;

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
    const { deadlineMs = 10_000, tryMs = 6_000 } = this.#options;
    const end = performance.now() + (call.deadlineMs ?? deadlineMs);
    if (this.#isCancelled(call)) return this.#cancelled(call, "cancelled before it was sent", true);
    let isUnsure = false;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#tried<T>(call, attempt, Math.min(tryMs, end - performance.now()));
      if (answer.kind === "ok") return answer;
      isUnsure ||= answer.kind === "unknown" && !answer.outcomeKnown;
      const stopped = await this.again(call, answer, attempt, end);
      // An earlier try may still be on its way, and be carried out after this answer.
      if (stopped !== undefined) return isUnsure ? { ...stopped, outcomeKnown: false } : stopped;
    }
  }

  /**
   * One try at an answer that comes line by line: gives the items that `take` finds, and ends with what came of it. Every line has `tryMs` to
   * come. How long the caller takes over one is up to the caller, and one that leaves ends the request.
   */
  async *lines<Item, End>(
    call: Call,
    attempt: number,
    take: (line: unknown) => Taken<Item, End>,
  ): AsyncGenerator<Item, Answer<End>, undefined> {
    const { tryMs = 6_000 } = this.#options;
    const tried = this.#begin(call, attempt, tryMs);
    const { cut } = tried;
    let answer: Answer<End> = this.#cancelled(call, "its reader has left", false);
    try {
      const response = await this.#send(call, tried);
      if (!isGood(response))
        return (answer = readProblem(response.status, response.headers, await cut.heed(response.text())));
      for await (const line of linesOf(response.body, cut)) {
        const taken = take(JSON.parse(line));
        if (taken === undefined) continue;
        if ("end" in taken) return (answer = taken.end);
        yield taken.item;
      }
      return (answer = unknown(`${call.operation}: the answer was broken off`, { status: response.status }));
    } catch (error) {
      return (answer = this.#failed(call, tried, error));
    } finally {
      this.#end(call, attempt, tried, answer);
    }
  }

  /** Waits before another try. Undefined: it is time for it; else what to end with, because there is to be none. */
  async again(
    call: Call,
    answer: Refused | Unknown,
    attempt: number,
    end = Infinity,
  ): Promise<Refused | Unknown | undefined> {
    const waitMs = this.#waitMs(call, answer, attempt);
    if (waitMs === undefined || performance.now() + waitMs + LEAST_TRY_MS >= end) return answer;
    tell(this.#options.hooks?.onRetry, { operation: call.operation, attempt, waitMs, why: sentence(answer) });
    await pause(waitMs, [this.#options.signal, call.signal]);
    return this.#isCancelled(call) ? this.#cancelled(call, "cancelled between two tries", true) : undefined;
  }

  /** Undefined: no further try. */
  #waitMs(call: Call, answer: Refused | Unknown, attempt: number): number | undefined {
    const { retries = 4, pauseMs = 100 } = this.#options;
    if (!call.isRepeatable || attempt > retries || this.#isCancelled(call)) return undefined;
    // Of the refusals only a limit passes by itself. That other leases hold a name is for the caller to hear, who may want another name.
    if (answer.kind === "refused" && (answer.code !== "RESOURCE_EXHAUSTED" || !answer.retryable))
      return undefined;
    const longest = Math.min(MAX_PAUSE_MS, pauseMs * 2 ** (attempt - 1));
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

  async #tried<T>(call: Call, attempt: number, timeoutMs: number): Promise<Answer<T>> {
    const tried = this.#begin(call, attempt, timeoutMs);
    const answer = await this.#once<T>(call, tried);
    this.#end(call, attempt, tried, answer);
    return answer;
  }

  #begin(call: Call, attempt: number, timeoutMs: number): Try {
    tell(this.#options.hooks?.onRequest, { operation: call.operation, attempt });
    return {
      cut: cutoff(timeoutMs, [this.#options.signal, call.signal]),
      startedMs: performance.now(),
      isSent: false,
      status: 0,
    };
  }

  #end({ operation }: Call, attempt: number, { cut, startedMs, status }: Try, answer: Answer<unknown>): void {
    cut.release();
    const { kind } = answer;
    const more =
      answer.kind === "ok" || answer.requestId === undefined ? {} : { requestId: answer.requestId };
    const code = kind === "refused" ? { code: answer.code } : {};
    tell(this.#options.hooks?.onResponse, {
      operation,
      attempt,
      kind,
      durationMs: performance.now() - startedMs,
      ...(status === 0 ? {} : { status }),
      ...code,
      ...more,
    });
  }

  async #once<T>(call: Call, tried: Try): Promise<Answer<T>> {
    try {
      const response = await this.#send(call, tried);
      const answered = await tried.cut.heed(response.text());
      if (!isGood(response)) return readProblem(response.status, response.headers, answered);
      const json: unknown = JSON.parse(answered);
      checkShape(json, call.shape);
      return { kind: "ok", value: json as T };
    } catch (error) {
      return this.#failed(call, tried, error);
    }
  }

  async #send({ method, path, body }: Call, tried: Try): Promise<FetchResponse> {
    const { cut } = tried;
    const headers = await cut.heed(this.#headers(body !== undefined));
    const init = {
      method,
      headers,
      signal: cut.signal,
      redirect: "manual",
      ...(body === undefined ? {} : { body }),
    } as const;
    tried.isSent = true;
    const response = await cut.heed(this.#fetch(`${this.#url}${path}`, init));
    tried.status = response.status;
    return response;
  }

  #failed({ operation }: Call, { cut, isSent }: Try, error: unknown): Unknown {
    const why = cut.why() ?? "unavailable";
    const reason: unknown = cut.why() === undefined ? error : cut.signal.reason;
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

const isGood = ({ status }: FetchResponse): boolean => status >= 200 && status < 300;

export const isKey = (given: unknown): given is string =>
  typeof given === "string" && /^[\x21-\x7e]+$/.test(given);

/** The cause says what `fetch failed` leaves out. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error && error.cause.message !== "" ? ` (${error.cause.message})` : "";
  return `${error.name}: ${error.message}${cause}`;
}
