import { isTraceparent } from "../traceparent.ts";
import { formatPositions, type Positions } from "../positions.ts";
import type { RouterClock } from "./clock.ts";
import { cachedMs, readJson, secondsOf, type RouterResponse } from "./read-body.ts";
import type { Name } from "./routes.ts";
import { describeError, type Source, type SourceAnswer, type SourceFailure } from "./source.ts";
import {
  constantsOf,
  MAX_RETRY_AFTER_MS,
  readCells,
  readFound,
  readNone,
  readReport,
  readResults,
} from "./wire.ts";

/** The part of `fetch` that the router needs. */
export type RouterFetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    signal: AbortSignal;
    redirect: "manual";
    body?: string;
  },
) => Promise<RouterResponse>;

export interface HttpSourceOptions {
  url: string;
  key: string | (() => string | Promise<string>);
  fetch: RouterFetch;
  clock: RouterClock;
  timeoutMs: number;
}

interface Reply {
  kind: "reply";
  status: number;
  body: unknown;
  /** How long it was in HTTP caches, in milliseconds. */
  cachedMs: number;
  retryAfterMs: number | undefined;
}

/** What a request has besides its content. */
interface Sending {
  signal: AbortSignal;
  traceparent?: string | undefined;
}

/** The most names in one message: what a coordinator accepts by default. */
const BATCH = 100;

/** How often a batch is sent, each time without a name that cannot exist. Then each name is sent alone. */
const BATCH_ROUNDS = 3;

/** The coordinator over its HTTP API. */
export class HttpSource implements Source {
  readonly #options: HttpSourceOptions;
  readonly #running = new Set<AbortController>();
  #isClosed = false;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
  }

  find(name: Name, minPositions: Positions, traceparent?: string): Promise<SourceAnswer> {
    return this.#withDeadline((signal) => this.#find(name, minPositions, { signal, traceparent }));
  }

  findMany(
    names: readonly Name[],
    minPositions: Positions,
    traceparent?: string,
  ): ReturnType<Source["findMany"]> {
    return this.#withDeadline(async (signal) => {
      const batches = Array.from({ length: Math.ceil(names.length / BATCH) }, (_, at) =>
        this.#findBatch(names.slice(at * BATCH, (at + 1) * BATCH), minPositions, { signal, traceparent }),
      );
      return (await Promise.all(batches)).flat();
    });
  }

  report(shard: number, after: number | undefined): ReturnType<Source["report"]> {
    return this.#withDeadline(async (signal) => {
      const query = after === undefined ? "" : `?after=${after}`;
      const reply = await this.#call("GET", `/v1/reports/${shard}${query}`, { signal });
      if (reply.kind === "failed") return reply;
      if (reply.status === 410) return { kind: "pruned" };
      const page = reply.status === 200 ? readReport(reply.body) : undefined;
      return page === undefined ? failureOf(reply) : { ...page, ageMs: page.ageMs + reply.cachedMs };
    });
  }

  cells(): ReturnType<Source["cells"]> {
    return this.#withDeadline(async (signal) => {
      const reply = await this.#call("GET", "/v1/cells", { signal });
      if (reply.kind === "failed") return reply;
      const list = reply.status === 200 ? readCells(reply.body) : undefined;
      return list === undefined ? failureOf(reply) : { ...list, ageMs: reply.cachedMs };
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const controller of this.#running) controller.abort(new Error("the router is closed"));
  }

  async #find({ type, value }: Name, min: Positions, sending: Sending): Promise<SourceAnswer> {
    // `fetch` removes segments that are empty or made of dots. The URL would then name something else.
    if (value === "" || value === "." || value === "..") return this.#findOne({ type, value }, min, sending);
    const path = `/v1/route/${encodeURIComponent(type)}/${encodeURIComponent(value)}`;
    const query = min.size === 0 ? "" : `?min_position=${formatPositions(min)}`;
    const reply = await this.#call("GET", path + query, sending);
    if (reply.kind === "failed") return reply;
    if (reply.status === 400) return refusalOf(reply);
    const read = { 200: readFound, 404: readNone }[reply.status];
    return aged(read?.(reply.body), reply);
  }

  /** Finds one name with a batch. */
  async #findOne(name: Name, min: Positions, sending: Sending): Promise<SourceAnswer> {
    const reply = await this.#lookup([name], min, sending);
    if (reply.kind === "failed") return reply;
    if (reply.status === 400) return refusalOf(reply);
    const [answer] = (reply.status === 200 ? readResults(reply.body, 1) : undefined) ?? [];
    return aged(answer, reply);
  }

  async #findBatch(
    names: readonly Name[],
    min: Positions,
    sending: Sending,
    roundsLeft = BATCH_ROUNDS,
  ): Promise<SourceAnswer[]> {
    const reply = await this.#lookup(names, min, sending);
    if (reply.kind === "failed") return names.map(() => reply);
    // One name that cannot exist fails the whole batch, so the others are sent again.
    const wrong = reply.status === 400 ? indexOf(reply) : undefined;
    if (wrong !== undefined && wrong < names.length && names.length > 1 && roundsLeft > 1) {
      const others = await this.#findBatch(names.toSpliced(wrong, 1), min, sending, roundsLeft - 1);
      return others.toSpliced(wrong, 0, refusalOf(reply));
    }
    if (reply.status === 400) return Promise.all(names.map((name) => this.#find(name, min, sending)));
    const answers = reply.status === 200 ? readResults(reply.body, names.length) : undefined;
    return names.map((_, at) => aged(answers?.[at], reply));
  }

  #lookup(names: readonly Name[], min: Positions, sending: Sending): Promise<Reply | SourceFailure> {
    const positions = min.size === 0 ? {} : { min_position: formatPositions(min) };
    const body = JSON.stringify({ names: names.map(({ type, value }) => ({ type, value })), ...positions });
    return this.#call("POST", "/v1/route", sending, body);
  }

  /** Ends the work when its time is up, even if `fetch` ignores its signal. */
  async #withDeadline<Answer>(
    work: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer | SourceFailure> {
    const { clock, timeoutMs } = this.#options;
    if (this.#isClosed) return { kind: "failed", detail: "the router is closed" };
    const controller = new AbortController();
    const { signal } = controller;
    this.#running.add(controller);
    const ended = new Promise<SourceFailure>((resolve) => {
      const listen = (): void => resolve({ kind: "failed", detail: (signal.reason as Error).message });
      signal.addEventListener("abort", listen, { once: true });
    });
    const cancel = clock.after(timeoutMs, () =>
      controller.abort(new Error(`no answer within ${timeoutMs} ms`)),
    );
    try {
      return await Promise.race([work(signal), ended]);
    } finally {
      cancel();
      this.#running.delete(controller);
    }
  }

  async #call(
    method: string,
    path: string,
    { signal, traceparent }: Sending,
    body?: string,
  ): Promise<Reply | SourceFailure> {
    const { url, key, fetch } = this.#options;
    try {
      const given = typeof key === "string" ? key : await key();
      // The platform's own error would quote the key.
      if (!isKey(given)) return { kind: "failed", detail: "`key` must be one line of visible ASCII" };
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${given}`,
          accept: "application/json",
          // Full pages of reports never change. Everything else is only useful if it is new.
          ...(path.startsWith("/v1/reports/") ? {} : { "cache-control": "no-cache" }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(traceparent !== undefined && isTraceparent(traceparent) ? { traceparent } : {}),
        },
        signal,
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
      return await readReply(response);
    } catch (error) {
      return { kind: "failed", detail: `the request to the coordinator failed: ${describeError(error)}` };
    }
  }
}

export const isKey = (given: unknown): given is string =>
  typeof given === "string" && /^[\x21-\x7e]+$/.test(given);

async function readReply(response: RouterResponse): Promise<Reply | SourceFailure> {
  const { status, headers } = response;
  const retryAfterS = secondsOf(headers.get("retry-after"));
  const retryAfterMs =
    retryAfterS === undefined ? undefined : Math.min(retryAfterS * 1_000, MAX_RETRY_AFTER_MS);
  try {
    const body = await readJson(response);
    return { kind: "reply", status, body, cachedMs: cachedMs(headers), retryAfterMs };
  } catch (error) {
    // Something between the router and the coordinator has answered, perhaps with a page of HTML.
    const detail = `status ${status} with a body that cannot be read: ${describeError(error)}`;
    return { kind: "failed", status, detail, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
}

/** An answer with its time in HTTP caches, or a failure if there is none. */
function aged(answer: SourceAnswer | undefined, reply: Reply): SourceAnswer {
  if (answer === undefined) return failureOf(reply);
  if (answer.kind !== "found" && answer.kind !== "none") return answer;
  return { ...answer, ageMs: answer.ageMs + reply.cachedMs };
}

/** A reply that says nothing about a name. */
function failureOf({ status, body, retryAfterMs }: Reply): SourceFailure {
  const { code, reason, field } = (body ?? {}) as { code?: unknown; reason?: unknown; field?: unknown };
  const detail =
    status === 200
      ? "an answer that is not as the API describes it"
      : ["status", status, ...constantsOf(code, reason)].join(" ");
  const behind = status === 503 && field === "min_position" ? ({ isBehind: true } as const) : {};
  return {
    kind: "failed",
    status,
    detail,
    ...behind,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** The index of the name that a batch was refused for. */
function indexOf(reply: Reply): number | undefined {
  if (refusalOf(reply).kind !== "invalid") return undefined;
  const { field } = reply.body as { field: string };
  const [, index] = /^names\[(\d{1,3})\]\./.exec(field) ?? [];
  return index === undefined ? undefined : Number(index);
}

/** What the coordinator says about a name that cannot exist. */
function refusalOf(reply: Reply): SourceAnswer {
  const { code, detail, field } = (reply.body ?? {}) as { code?: unknown; detail?: unknown; field?: unknown };
  const isAboutName = typeof field === "string" && /(^|[.\]])(bucket_type|type|value)$/.test(field);
  if (code !== "INVALID_ARGUMENT" || typeof detail !== "string" || !isAboutName) return failureOf(reply);
  return { kind: "invalid", detail, field: field.endsWith("type") ? "bucket_type" : "value" };
}
