import { formatPositions, type Positions } from "../positions.ts";
import type { RouterClock } from "./clock.ts";
import type { CellAddress, Name } from "./routes.ts";
import {
  describeError,
  type CellList,
  type ReportPage,
  type Source,
  type SourceAnswer,
  type SourceFailure,
} from "./source.ts";

/** The part of a standard `ReadableStream` of bytes that the router needs. */
interface BodyStream {
  getReader(): {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

export interface RouterResponse {
  status: number;
  headers: { get(name: string): string | null };
  body: BodyStream | null;
}

/** More than any answer for routers has. */
const MAX_BYTES = 4 * 2 ** 20;

/** Reads a body of JSON. Throws if it is longer than 4 MiB, or if it is no JSON. */
async function readJson({ body }: RouterResponse): Promise<unknown> {
  const reader = body?.getReader();
  if (reader === undefined) throw new TypeError("the answer has no body");
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return JSON.parse(text + decoder.decode());
    bytes += value?.byteLength ?? 0;
    if (bytes > MAX_BYTES) {
      // Whether the rest can be cancelled does not matter.
      reader.cancel().catch(() => {});
      throw new RangeError(`the answer has more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * How long an answer was in HTTP caches, in milliseconds. `Age` has whole seconds, so up to one more may have
 * passed. A hit without `Age` counts as old as its `Cache-Control` allows.
 */
function cachedMs(headers: RouterResponse["headers"]): number {
  const age = secondsOf(headers.get("age"));
  if (age !== undefined) return (age + 1) * 1_000;
  const status = headers.get("cf-cache-status") ?? headers.get("x-cache") ?? "";
  if (!/\b(hit|stale|updating|revalidated)\b/i.test(status)) return 0;
  const [, maxAge] = /\bmax-age=(\d+)/i.exec(headers.get("cache-control") ?? "") ?? [];
  return maxAge === undefined ? Infinity : Number(maxAge) * 1_000;
}

/** A header of whole seconds, or undefined. */
export const secondsOf = (text: string | null): number | undefined =>
  text !== null && /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined;

/** A longer time to wait is cut. */
const MAX_RETRY_AFTER_MS = 60_000;

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isHash = (value: unknown): value is string => typeof value === "string" && /^[0-9a-f]{16}$/.test(value);

const isText = (value: unknown): value is string => typeof value === "string";

function readCell(value: unknown): CellAddress | undefined {
  if (!isFields(value)) return undefined;
  const { id, address } = value;
  return isText(id) && id !== "" && isText(address) ? { id, address } : undefined;
}

function readFacts(body: Fields) {
  const { key, shard, position, settled, age_ms: ageMs } = body;
  if (!isHash(key) || !isCount(shard) || !isCount(position)) return undefined;
  if (typeof settled !== "boolean" || typeof ageMs !== "number" || !(ageMs >= 0)) return undefined;
  return { key, shard, position, settled, ageMs };
}

/** Reads the body of a 200. */
function readFound(body: unknown): SourceAnswer | undefined {
  if (!isFields(body)) return undefined;
  const facts = readFacts(body);
  const cell = readCell(body["cell"]);
  const { epoch } = body;
  // Without an epoch, nothing orders the owners of the name. Cell keys don't get it for other cells' names.
  if (facts === undefined || cell === undefined || !isCount(epoch)) return undefined;
  return { kind: "found", cell, epoch, ...facts };
}

/** Reads the body of a 404. Without its `route`, it may be about anything. */
function readNone(body: unknown): SourceAnswer | undefined {
  const route = isFields(body) ? body["route"] : undefined;
  const facts = isFields(route) ? readFacts(route) : undefined;
  return facts && { kind: "none", ...facts };
}

/** Reads the results of a batch, which must be as many as were asked for. */
function readResults(body: unknown, count: number): SourceAnswer[] | undefined {
  const results = isFields(body) ? body["results"] : undefined;
  if (!Array.isArray(results) || results.length !== count) return undefined;
  const answers = results.map((result: unknown) => {
    if (!isFields(result)) return undefined;
    if (result["unavailable"] !== undefined) return readUnavailable(result);
    if (result["found"] === true) return readFound(result);
    // Anything else must not look like a name that does not exist.
    return result["found"] === false ? readNone({ route: result }) : undefined;
  });
  return answers.every((each) => each !== undefined) ? answers : undefined;
}

/** Reads the result of a name that is unavailable while others are answered. */
function readUnavailable({ shard, unavailable }: Fields): SourceFailure | undefined {
  if (!isFields(unavailable) || !isCount(shard)) return undefined;
  const { code, reason, field, retry_after_ms: retryAfterMs } = unavailable;
  return {
    kind: "failed",
    detail: [`shard ${shard}`, ...constantsOf(code, reason)].join(" "),
    shard,
    ...(field === "min_position" ? { isBehind: true } : {}),
    ...(isCount(retryAfterMs) ? { retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) } : {}),
  };
}

/** The constants of a problem, for logs. Anything else may have a name in it. */
const constantsOf = (code: unknown, reason: unknown): string[] =>
  [code, reason].filter((each): each is string => isText(each) && /^[A-Z_]{1,64}$/.test(each));

function readReport(body: unknown): ReportPage | undefined {
  if (!isFields(body)) return undefined;
  const { shard, after, through, held, has_more: hasMore, age_ms: ageMs } = body;
  if (!isCount(shard) || !isCount(after) || !isCount(through) || !Array.isArray(held)) return undefined;
  if (typeof hasMore !== "boolean" || typeof ageMs !== "number" || !(ageMs >= 0)) return undefined;
  if (!held.every(isRow)) return undefined;
  const rows = held.map(([distance, keys]) => [after + distance, keys] as const);
  return { kind: "page", shard, after, through, held: rows, hasMore, ageMs };
}

function isRow(row: unknown): row is [number, string[]] {
  if (!Array.isArray(row) || row.length !== 2) return false;
  const [distance, keys] = row as unknown[];
  return isCount(distance) && Array.isArray(keys) && keys.every(isHash);
}

function readCells(body: unknown): CellList | undefined {
  if (!isFields(body)) return undefined;
  const { cells: list, age_ms: copyAgeMs } = body;
  if (!Array.isArray(list) || !isCount(copyAgeMs)) return undefined;
  const cells = list.map(readCell);
  return cells.every((each) => each !== undefined)
    ? { kind: "cells", cells, ageMs: 0, copyAgeMs }
    : undefined;
}

/** The `traceparent` header (W3C Trace Context, Level 1). */

const FORM = /^(?!ff)([\da-f]{2})-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(-[\x21-\x7e]*)?$/;

/** Whether a header identifies a span. Later versions than 00 may have more fields. */
export function isTraceparent(header: string): boolean {
  const [found, version, more] = (header.length <= 512 && FORM.exec(header)) || [];
  return found !== undefined && (version !== "00" || more === undefined);
}

/** Begins a trace. It is sampled with this probability. */
export const newTraceparent = (share: number): string =>
  // The digits of a UUID's version and variant are never 0.
  `00-${newDigits()}-${newDigits().slice(-16)}-${Math.random() < share ? "01" : "00"}`;

const newDigits = (): string => crypto.randomUUID().replaceAll("-", "");

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
