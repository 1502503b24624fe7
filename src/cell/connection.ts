import { unknown, type Answer, type Refused, type Unknown, type WireConflict } from "./answer.ts";

/** The part of the standard `fetch` that a cell needs. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; signal: AbortSignal; body?: string },
) => Promise<{ status: number; headers: { get(name: string): string | null }; text(): Promise<string> }>;

export interface ConnectionOptions {
  /** Of the coordinator, without a path. */
  url: string;
  key: string;
  fetch?: Fetch;
  /** For a call with all its tries. */
  deadlineMs?: number;
  /** For one try. Longer than the coordinator's own deadline for a begin (5 s), so that its answer is preferred over a guess. */
  tryMs?: number;
  /** Before the second try; doubles with each further one, up to a second, less a random part. */
  pauseMs?: number;
  /** Ends every call at once, with an unknown outcome. */
  signal?: AbortSignal;
}

export interface Call<T> {
  method: "GET" | "PUT" | "POST";
  /** With the query, percent-encoded. */
  path: string;
  body?: unknown;
  /** Throws when the answer is not what was agreed: that is an unknown outcome, never an empty one. */
  read: (json: unknown) => T;
}

const MAX_PAUSE_MS = 1_000;

/**
 * Calls the coordinator, and calls again while the outcome is unknown. Every call must therefore be one that may be repeated: a read, or
 * a write that carries its own UUID.
 */
export class Connection {
  readonly #url: string;
  readonly #key: string;
  readonly #fetch: Fetch;
  readonly #deadlineMs: number;
  readonly #tryMs: number;
  readonly #pauseMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(options: ConnectionOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#key = options.key;
    // Wrapped, because the platform's fetch must not be called as a method of something else.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
    this.#deadlineMs = options.deadlineMs ?? 15_000;
    this.#tryMs = options.tryMs ?? 6_000;
    this.#pauseMs = options.pauseMs ?? 50;
    this.#signal = options.signal;
  }

  async call<T>(call: Call<T>): Promise<Answer<T>> {
    const end = performance.now() + this.#deadlineMs;
    for (let pauseMs = this.#pauseMs; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const answer = await this.#once(call, Math.min(this.#tryMs, end - performance.now()));
      if (answer.kind !== "unknown" || this.#signal?.aborted === true) return answer;
      const waitMs = pauseMs * (0.5 + Math.random() / 2);
      // A try needs some time of its own: one that is cut off at once would only add load.
      if (performance.now() + waitMs + this.#pauseMs >= end) return answer;
      await new Promise((resume) => setTimeout(resume, waitMs));
    }
  }

  async #once<T>({ method, path, body, read }: Call<T>, timeoutMs: number): Promise<Answer<T>> {
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    const signal = this.#signal === undefined ? timeout : AbortSignal.any([timeout, this.#signal]);
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}`, accept: "application/json" };
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      const response = await this.#fetch(`${this.#url}${path}`, {
        method,
        headers,
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.status >= 200 && response.status < 300) return { kind: "ok", value: read(JSON.parse(text)) };
      return readProblem(response.status, response.headers, text);
    } catch (error) {
      return unknown(`${method} ${path}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`);
    }
  }
}

/**
 * A refusal is a problem document with a code, and below 500. What a proxy in between says, and every 5xx, tells nothing about what
 * the coordinator did.
 */
function readProblem(status: number, headers: { get(name: string): string | null }, text: string): Refused | Unknown {
  const problem = parse(text);
  const isProblem = (headers.get("content-type") ?? "").startsWith("application/problem+json");
  if (!isProblem || status < 400 || status >= 500 || !isObject(problem) || typeof problem["code"] !== "string") {
    const detail = isObject(problem) && typeof problem["detail"] === "string" ? problem["detail"] : "no problem document";
    return unknown(`HTTP ${status}: ${detail}`);
  }
  const retryAfterS = Number(headers.get("retry-after") ?? Number.NaN);
  return {
    kind: "refused",
    status,
    code: problem["code"],
    detail: typeof problem["detail"] === "string" ? problem["detail"] : "",
    conflicts: Array.isArray(problem["conflicts"]) ? problem["conflicts"].map(readConflict) : [],
    ...(typeof problem["reason"] === "string" ? { reason: problem["reason"] } : {}),
    ...(Number.isFinite(retryAfterS) ? { retryAfterMs: retryAfterS * 1_000 } : {}),
  };
}

function readConflict(json: unknown): WireConflict {
  const conflict = objectOf(json);
  const { list, index, kind, owner, retry_after_ms: retryAfterMs } = conflict;
  const bucket = objectOf(conflict["bucket"]);
  if (list !== "creates" && list !== "destroys" && list !== "replaces") throw new TypeError("a conflict without its list");
  return {
    list,
    index: numberOf(index, "index"),
    bucket: { type: stringOf(bucket["type"], "type"), value: stringOf(bucket["value"], "value") },
    kind: stringOf(kind, "kind"),
    ...(owner === "self" || owner === "other" ? { owner } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// For readers of answers: each returns what it was promised, or throws.

const isObject = (json: unknown): json is Record<string, unknown> => typeof json === "object" && json !== null && !Array.isArray(json);

export function objectOf(json: unknown): Record<string, unknown> {
  if (!isObject(json)) throw new TypeError("the answer is not an object");
  return json;
}

export function listOf(json: unknown, what: string): unknown[] {
  if (!Array.isArray(json)) throw new TypeError(`the answer's ${what} is not a list`);
  return json;
}

export function stringOf(json: unknown, what: string): string {
  if (typeof json !== "string") throw new TypeError(`the answer's ${what} is not text`);
  return json;
}

export function numberOf(json: unknown, what: string): number {
  if (typeof json !== "number") throw new TypeError(`the answer's ${what} is not a number`);
  return json;
}
