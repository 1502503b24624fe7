import { callHook } from "../hooks.ts";
import { isTraceparent, newTraceparent } from "../lookups/http-source.ts";
import type { FindOptions, WrongRoute } from "../lookups/routes.ts";
import { mergePositions, positionsFromCookie, type Positions } from "../positions.ts";
import { classify } from "../rules/classify.ts";
import type { Classification, Match } from "../rules/types.ts";
import { failureOf, problemResponse, type FailureKind, type ProxyFailure } from "./failure.ts";
import {
  answerHeaders,
  isLooping,
  requestHeaders,
  type Forwarding,
  type RequestTrace,
  type RouteFacts,
} from "./headers.ts";
import { settingsOf, type ProxyOptions, type ProxySettings } from "./options.ts";
import { canSendAgain, sendAgain, Upload, wrongRuleOf } from "./upload.ts";

type AttemptResult =
  | { readonly kind: "answered"; readonly response: Response }
  | { readonly kind: "failed"; readonly failure: ProxyFailure };

interface Target {
  readonly rule: string;
  readonly address: string;
  readonly facts: RouteFacts;
}

/**
 * As the Fetch standard says, `fetch` adds `Cache-Control: no-cache` to a request with `If-None-Match` or the
 * like, and then many cells never answer 304. With another cache mode than the default, it adds nothing. This
 * one makes no difference otherwise, because `fetch` has no cache outside of browsers. Workers refuse it, and
 * add nothing by themselves.
 */
const CACHE_MODE = supported({ cache: "force-cache" });

/** Empty if the runtime refuses the option. */
function supported(init: object): object {
  try {
    void new Request("https://cell.invalid", init);
    return init;
  } catch {
    return {};
  }
}

/**
 * Sends a request to a cell and waits for the beginning of its answer. It is never sent again from here: the
 * cell may have done what it asks for.
 */
async function attempt(
  request: Request,
  upload: Upload | null,
  { rule, address, facts }: Target,
  forwarding: Forwarding,
  settings: Pick<ProxySettings, "fetch" | "originOf" | "answerTimeoutMs" | "uploadTimeoutMs">,
): Promise<AttemptResult> {
  const about = { rule, cell: facts.cell };
  const fail = (kind: FailureKind, detail: string, error?: unknown): AttemptResult => ({
    kind: "failed",
    failure: failureOf(kind, detail, { ...about, ...(error === undefined ? {} : { error }) }),
  });
  const gone = (): AttemptResult => fail("client_gone", "the client closed the request");
  if (request.signal.aborted) return gone();
  const origin = settings.originOf(address);
  if (origin === null)
    return fail("unusable_address", `the address of cell ${facts.cell} is not a bare https origin`);
  const { pathname, search, origin: own } = forwarding.url;
  if (origin === own)
    return fail("unusable_address", `the address of cell ${facts.cell} is that of the router itself`);
  const control = new AbortController();
  let isLate = false;
  const timer = setTimeout(
    () => {
      isLate = true;
      control.abort();
    },
    upload === null ? settings.answerTimeoutMs : settings.uploadTimeoutMs,
  );
  const headers = requestHeaders(request, facts, forwarding);
  // A cell may refuse a body that is too long before it has read it.
  if (upload !== null && upload.lengthBytes !== null)
    headers.set("content-length", String(upload.lengthBytes));
  const init: object = {
    method: request.method,
    headers,
    redirect: "manual",
    ...CACHE_MODE,
    // Cheaper in workerd than a listener of the request's signal.
    signal: AbortSignal.any([request.signal, control.signal]),
    ...(upload === null ? {} : { body: upload.body, duplex: "half" }),
  };
  try {
    // A path must not be resolved against the origin: `//host` would name another host.
    return { kind: "answered", response: await settings.fetch(`${origin}${pathname}${search}`, init) };
  } catch (error) {
    if (request.signal.aborted || upload?.isBroken === true) return gone();
    if (isLate) return fail("timeout", `cell ${facts.cell} sent no answer in time`);
    return fail("unreachable", `the connection to cell ${facts.cell} failed`, error);
  } finally {
    clearTimeout(timer);
  }
}

/** What the proxy is told about a request besides the request. */
export interface ProxyContext {
  /** The address of the client, for `X-Forwarded-For`. */
  clientAddress?: string | undefined;
  /** Keeps work alive after the answer, such as `ctx.waitUntil` of a Worker. */
  waitUntil?: ((work: Promise<unknown>) => void) | undefined;
}

/**
 * Answers a request with the answer of the cell that it belongs to. Never throws. The headers of an answer
 * may be immutable: to change them, make a copy with `new Response(answer.body, answer)`.
 */
export type Proxy = (request: Request, context?: ProxyContext) => Promise<Response>;

const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(["GET", "HEAD"]);
const METHODS_OF_PROXIES: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);
/** Failures of a connection that a new address of the cell could end. */
const MAY_HAVE_MOVED: ReadonlySet<FailureKind> = new Set(["unreachable", "timeout"]);
/** These statuses have no body, and a `Response` refuses one. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/**
 * Makes a proxy in front of cells. It asks `ruleset` which names a request is about and `routes` which cell
 * has them, and passes the request to that cell. Bodies are streamed in both directions.
 *
 * If the cell answers 421, because it does not have the name, the proxy asks the coordinator again, and
 * passes the request on once more. Only a client has the body of its request, so a client that has sent one
 * is asked to send it again (307).
 *
 * @throws A `TypeError` that names an option with a wrong value.
 * @example
 * ```ts
 * import { compileRuleset, createProxy, type Routes } from "leasehold/router";
 *
 * declare const routes: Routes;
 * const ruleset = compileRuleset([
 *   {
 *     id: "groups",
 *     match: { type: "path", pattern: "/groups/:name/*" },
 *     action: "classify",
 *     classify: { type: "ROUTES", value: "${name}" },
 *   },
 * ]);
 * const proxy = createProxy({ routes, ruleset });
 *
 * export default { fetch: (request: Request) => proxy(request) };
 * ```
 */
export function createProxy(options: ProxyOptions): Proxy {
  const settings = settingsOf(options);
  return (request, context = {}) => {
    const url = urlOf(request);
    const exchange = new Exchange(request, url ?? NO_URL, context, settings);
    return url === null ? exchange.fail(failureOf("url", "the request has no valid URL")) : exchange.run();
  };
}

/** Stands for the URL of a request that gets no further. */
const NO_URL = new URL("https://invalid");

/** workerd passes every `Host` header on, so a request's URL may be invalid. */
function urlOf({ url }: Request): URL | null {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}

/** Continues the client's trace, or begins one. */
function traceOf(headers: Headers, share: number): RequestTrace {
  const given = headers.get("traceparent");
  return given !== null && isTraceparent(given)
    ? { traceparent: given, isNew: false }
    : { traceparent: newTraceparent(share), isNew: true };
}

type Chosen = Extract<Classification, { kind: "cell" }>;
type Found = { readonly chosen: Chosen } | { readonly failure: ProxyFailure };

/** One request on its way through the proxy. */
class Exchange {
  readonly #request: Request;
  readonly #context: ProxyContext;
  readonly #settings: ProxySettings;
  readonly #forwarding: Forwarding;
  /** A rule that named a cell that has refused this request before. */
  readonly #wrongRule: string | null;
  #minPositions: Positions;
  #matches: Iterator<Match>;
  #upload: Upload | null = null;

  constructor(request: Request, url: URL, context: ProxyContext, settings: ProxySettings) {
    this.#request = request;
    this.#context = context;
    this.#settings = settings;
    const { trustForwarded, traceShare } = settings;
    const trace = traceShare === undefined ? undefined : traceOf(request.headers, traceShare);
    this.#forwarding = { url, clientAddress: context.clientAddress, trustForwarded, trace };
    const cookies = request.headers.get("cookie");
    this.#wrongRule = wrongRuleOf(cookies);
    this.#minPositions = positionsFromCookie(cookies);
    this.#matches = this.#matchesFromTheStart();
  }

  async run(): Promise<Response> {
    try {
      return await this.#run();
    } catch (error) {
      // An unexpected error must not look like a name that does not exist.
      const isGone = this.#request.signal.aborted;
      return await this.fail(
        isGone
          ? failureOf("client_gone", "the client closed the request")
          : failureOf("internal", "the router failed", { error }),
      );
    }
  }

  /** Answers with a failure. */
  async fail(failure: ProxyFailure): Promise<Response> {
    callHook(this.#settings.hooks.onProxyFailure, failure);
    // A body that somebody else reads cannot be taken.
    if (this.#request.body?.locked !== true) this.#upload ??= this.#takeBody();
    await this.#upload?.discard();
    try {
      const page = await this.#settings.failurePage?.(failure, this.#request);
      return page ?? problemResponse(failure);
    } catch {
      return problemResponse(failure);
    }
  }

  async #run(): Promise<Response> {
    if (METHODS_OF_PROXIES.has(this.#request.method))
      return await this.fail(failureOf("method", `${this.#request.method} cannot be forwarded`));
    if (METHODS_WITHOUT_BODY.has(this.#request.method) && this.#hasBody())
      return await this.fail(failureOf("body", "a GET or HEAD request must not have a body"));
    if (isLooping(this.#request))
      return await this.fail(
        failureOf("loop", "routers send this request to each other; a cell has the address of a router"),
      );
    const first = await this.#choose();
    if ("failure" in first) return await this.fail(first.failure);
    this.#upload = this.#takeBody();
    const answer = await this.#send(first.chosen, 0);
    if (answer instanceof Response) return answer;
    return await this.#heal(first.chosen);
  }

  /** Goes on after the first 421: there is at most one more cell. */
  async #heal(wrong: Chosen): Promise<Response> {
    const [second] = await Promise.all([this.#chooseAgain(wrong), this.#upload?.discard()]);
    if ("failure" in second) return await this.fail(second.failure);
    const { chosen } = second;
    const refused = this.#misdirected(wrong);
    if (chosen.cell.id === wrong.cell.id) return await this.fail(refused);
    if (this.#upload === null)
      return (await this.#send(chosen, 1)) ?? (await this.fail(this.#misdirected(chosen)));
    if (!canSendAgain(this.#request)) return await this.fail(refused);
    callHook(this.#settings.hooks.onProxyFailure, refused);
    const wrongRule = wrong.answer === null ? wrong.rule : null;
    return sendAgain(this.#request, this.#minPositions, wrongRule, this.#settings.boundMs);
  }

  #hasBody(): boolean {
    const { body, headers } = this.#request;
    return body !== null && headers.get("content-length") !== "0";
  }

  #takeBody(): Upload | null {
    const { body, headers } = this.#request;
    if (body === null || !this.#hasBody()) return null;
    const length = headers.get("content-length");
    const lengthBytes = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null;
    return new Upload(body, lengthBytes, this.#settings.discard);
  }

  /** Returns the client's answer, or undefined if the cell answered 421. */
  async #send(chosen: Chosen, hops: number): Promise<Response | undefined> {
    const { hooks } = this.#settings;
    const { rule, cell, answer } = chosen;
    if (chosen.isFallback) callHook(hooks.onFallback, { rule });
    const facts = factsOf(chosen, hops);
    const target = { rule, address: cell.address, facts };
    const result = await attempt(this.#request, this.#upload, target, this.#forwarding, this.#settings);
    if (result.kind === "failed") {
      // The cell may have moved. This request stays failed, because the cell may have done what it asks for.
      if (MAY_HAVE_MOVED.has(result.failure.kind))
        this.#settings.routes.refreshCells({ waitUntil: this.#context.waitUntil });
      return await this.fail(result.failure);
    }
    const { response } = result;
    if (response.status === 421) {
      const tombstoneEpoch = epochOf(response.headers.get("leasehold-epoch"));
      callHook(hooks.onRefused, { rule, cell: cell.id, hops, epoch: answer?.epoch ?? null, tombstoneEpoch });
      await response.body?.cancel().catch(() => {});
      return undefined;
    }
    // The cell may have answered without reading the body. Answers that do not end the request stream on.
    if (response.status >= 300) await this.#upload?.discard();
    callHook(hooks.onForwarded, { rule, cell: cell.id, status: response.status, hops });
    return toClient(response, this.#settings.showRoute ? facts : null);
  }

  #matchesFromTheStart(): Iterator<Match> {
    const { method, headers } = this.#request;
    const { url } = this.#forwarding;
    return this.#settings.ruleset.matches({ method, headers, url })[Symbol.iterator]();
  }

  /** The first cell that the rules find, starting with the next rule that was not asked yet. */
  async #choose(): Promise<Found> {
    const { routes } = this.#settings;
    let none: ProxyFailure | undefined;
    for (;;) {
      const { value: match, done } = this.#matches.next();
      if (done === true) break;
      // The cell that this rule names has already refused the request.
      if (match.rule === this.#wrongRule && match.action !== "classify" && match.continues) continue;
      const found = await classify(match, routes, this.#findOptions());
      if (found.kind === "cell") return { chosen: found };
      const { kind, rule, detail } = found;
      if (kind === "misconfigured") return { failure: failureOf("misconfigured", detail, { rule }) };
      if (kind === "unavailable")
        return { failure: failureOf("unavailable", detail, { rule, retryAfterMs: found.retryAfterMs }) };
      none = failureOf("no_cell", detail, { rule });
      if (!match.continues) break;
    }
    return { failure: none ?? failureOf("no_cell", "no rule matches this request") };
  }

  /**
   * Asks the coordinator about the name again, and starts over with the rules: a name further down the list
   * may decide now. If a rule named the cell, there is nothing to ask, and the next rule decides, if the rule
   * lets it.
   */
  async #chooseAgain(wrong: Chosen): Promise<Found> {
    const { routes } = this.#settings;
    const { rule, matchedName, answer, isFallback } = wrong;
    if (matchedName === null || answer === null) {
      const next = await this.#choose();
      const isLast = "failure" in next && next.failure.kind === "no_cell" && next.failure.rule === null;
      // No name was looked up, so nobody knows that it does not exist. Only a default cell decides that.
      return isLast && !isFallback ? { failure: this.#misdirected(wrong) } : next;
    }
    const known: WrongRoute = { shard: answer.shard, position: answer.position };
    const fresh = await routes.refresh(matchedName, known, this.#findOptions());
    if (fresh.kind === "unavailable") {
      const { detail, retryAfterMs } = fresh;
      return { failure: failureOf("unavailable", detail, { rule, retryAfterMs }) };
    }
    if (fresh.kind !== "invalid") {
      const position = new Map([[fresh.shard, fresh.position]]);
      this.#minPositions = mergePositions(this.#minPositions, position);
    }
    this.#matches = this.#matchesFromTheStart();
    return await this.#choose();
  }

  #findOptions(): FindOptions {
    return {
      traceparent: this.#forwarding.trace?.traceparent,
      minPositions: this.#minPositions,
      signal: this.#request.signal,
      waitUntil: this.#context.waitUntil,
    };
  }

  #misdirected({ rule, cell }: Pick<Chosen, "rule" | "cell">): ProxyFailure {
    const detail = "the cell that should have this does not have it; try again in a moment";
    return failureOf("misdirected", detail, { rule, cell: cell.id, retryAfterMs: this.#settings.boundMs });
  }
}

function factsOf({ cell, answer, action, matchedName, isFallback }: Chosen, hops: number): RouteFacts {
  return {
    cell: cell.id,
    epoch: answer?.epoch ?? null,
    ageMs: answer?.ageMs ?? null,
    isStale: answer?.isStale ?? false,
    hops,
    ruleAction: isFallback && action === "cell" ? "proxy" : "classify",
    ruleType: matchedName?.type ?? RULE_TYPES[action],
  };
}

/** The names that GitLab's router uses for rules without a claim. */
const RULE_TYPES: Readonly<Record<Match["action"], string | null>> = {
  classify: null,
  not_found: null,
  cell: "CELL_ID",
  session_prefix: "SESSION_PREFIX",
  first_cell: "FIRST_CELL",
};

const epochOf = (text: string | null): number | null =>
  text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;

function toClient(response: Response, shown: RouteFacts | null): Response {
  const headers = answerHeaders(response.headers, shown);
  if (headers === response.headers) return response;
  const { status, statusText, body } = response;
  // Only workerd has the other end of a WebSocket in an answer.
  const socket = status === 101 ? { webSocket: (response as { webSocket?: unknown }).webSocket } : {};
  const init: object = { status, statusText, headers, ...socket };
  return new Response(WITHOUT_BODY.has(status) ? null : body, init);
}
