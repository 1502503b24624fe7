import { isAllowed, type Principal } from "../auth/principal.ts";
import { HISTORY_HEADER } from "../capabilities/loss/history.ts";
import type { HistoryPoint } from "../kernel/messages.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import { accessRefusal, formatRefusal, notAllowed } from "./access-refusal.ts";
import { authenticate } from "./authenticate.ts";
import { decodeParameters, parseQuery } from "./address.ts";
import { readBody, sizeBeforeReading } from "./body.ts";
import { routes, type RouteId, type Routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import { deploymentOf, logOf, type Deployment } from "../isolate/deployment.ts";
import type { Handlers } from "./handler.ts";
import { secured, JSON_TYPE, jsonAnswer } from "./http-answer.ts";
import { readHistoryHeader } from "../capabilities/loss/edge/history-header.ts";
import type { HttpAnswer, Incoming, RequestContext } from "./incoming.ts";
import {
  jsonLines,
  openLines,
  type Lines,
  acceptsEvents,
  EVENT_STREAM,
  eventLines,
  type ServerSentEvent,
} from "./lines.ts";
import { boundsOf, NO_BODY, requestListsOf, type RequestLists } from "./list-limits.ts";
import type { PageTokens } from "./page-token.ts";
import { problemAnswer, type Failure } from "./problem.ts";
import type { Trace } from "./trace.ts";
import { validate } from "./validate.ts";

interface Identified {
  principal: Principal | null;
  tokens: PageTokens | null;
}

interface Input {
  params: unknown;
  query: unknown;
  body: unknown;
  wantsEvents?: boolean;
  seen?: HistoryPoint;
}

/** Carries out a request of one route, with the parameters of its path as they were sent. */
export type Bound = (context: RequestContext, parameters: ReadonlyMap<string, string>) => Promise<HttpAnswer>;

/**
 * Binds the handler of a route. Every request takes the same steps: verify the key (401), check role and cell
 * (403), wait for room in the caller's fair share (429), check the form (400, 408, 413, 415), check for
 * revocation (401), then run the handler. No object is called before the check for revocation, so the answers
 * of the earlier steps don't reveal what exists.
 */
export function bind(routeId: RouteId, handler: Handlers<Routes>[RouteId]): Bound {
  const route: Route = routes[routeId];
  const lists = requestListsOf(route);
  // `Call` and `Answer` derive the handler's types from this route's schemas, which this generic code cannot
  // express.
  const handle = handler as unknown as (call: unknown) => Promise<Result<AnyAnswer>>;
  return async (context, raw) => {
    const { incoming, env, trace, waitUntil } = context;
    trace.route = routeId;
    const result = await serve(route, lists, context, raw, (deployment, identified, input) =>
      handle({
        routeId,
        requestId: trace.requestId,
        deployment,
        waitUntil,
        get signal() {
          return incoming.closed;
        },
        accept: incoming.header("accept"),
        ...identified,
        ...input,
      }),
    );
    if (!result.ok) return fail(result.refusal, trace);
    if ("events" in result.value) return openEvents(result.value.events, context);
    const { status, body, headers = {} } = result.value;
    const { mediaType, lines } = route.responses[status] ?? {};
    const isEncoded = body instanceof ReadableStream;
    if (mediaType === undefined && !isEncoded) return jsonAnswer(body, status, headers, trace.requestId);
    const made =
      lines === true
        ? await openLines(body as Lines<unknown>, jsonLines, trace, logOf(env))
        : ok(isEncoded ? body : String(body));
    if (!made.ok) return fail(made.refusal, trace);
    const type = mediaType === undefined ? JSON_TYPE : `${mediaType}; charset=utf-8`;
    return {
      status,
      headers: secured({ "content-type": type, ...headers }, trace.requestId),
      body: made.value,
    };
  };
}

async function openEvents(
  events: Lines<ServerSentEvent>,
  { env, trace }: RequestContext,
): Promise<HttpAnswer> {
  const made = await openLines(events, eventLines, trace, logOf(env));
  if (!made.ok) return fail(made.refusal, trace);
  // Without it, a proxy such as nginx would keep events back until it has a whole buffer.
  const headers = { "content-type": EVENT_STREAM, "x-accel-buffering": "no" };
  return { status: 200, headers: secured(headers, trace.requestId), body: made.value };
}

type AnyAnswer =
  | { status: number; body: unknown; headers?: Record<string, string> }
  | { status: number; events: Lines<ServerSentEvent> };

type Handle = (deployment: Deployment, identified: Identified, input: Input) => Promise<Result<AnyAnswer>>;

async function serve(
  route: Route,
  lists: RequestLists,
  context: RequestContext,
  raw: ReadonlyMap<string, string>,
  handle: Handle,
): Promise<Result<AnyAnswer>> {
  const { incoming, trace, waitUntil } = context;
  const deployment = deploymentOf(context.env);
  const identified = await identify(route, context, deployment);
  const traced = deployment.tracing?.begin(trace, waitUntil);
  if (!identified.ok) return identified;

  const { principal } = identified.value;
  if (principal !== null && !isAllowed(principal, route.roles, raw.get("cell")))
    return refused("PERMISSION_DENIED", notAllowed(principal));

  const work = async (): Promise<Result<AnyAnswer>> => {
    const input = await readInput(route, lists, incoming, deployment, raw);
    if (!input.ok) return input;
    const { cell } = input.value.params as { cell?: string };
    const refusal =
      (await accessRefusal(deployment, principal, cell, route.group === "parts", waitUntil)) ??
      (await formatRefusal(deployment, route, waitUntil));
    if (refusal !== undefined) return { ok: false, refusal };
    const answer = await (traced === undefined ? deployment : deployment.tracedBy(traced)).placed((placed) =>
      handle(placed, identified.value, input.value),
    );
    if (principal !== null) deployment.uses.note(principal, answer, waitUntil);
    return answer;
  };
  if (principal === null) return work();
  const sizeBytes = sizeBeforeReading(incoming);
  const run = await deployment.fairShares.run(principal, sizeBytes, waitUntil, work);
  return run.ok ? run.value : run;
}

async function identify(
  route: Route,
  { incoming, trace, waitUntil }: RequestContext,
  deployment: Deployment,
): Promise<Result<Identified>> {
  if (route.roles === "anyone") return ok({ principal: null, tokens: null });
  const authenticated = await authenticate(deployment, incoming, waitUntil, "json");
  if (authenticated.ok) trace.principal = authenticated.value.principal;
  return authenticated;
}

async function readInput(
  route: Route,
  lists: RequestLists,
  incoming: Incoming,
  deployment: Deployment,
  raw: ReadonlyMap<string, string>,
): Promise<Result<Input>> {
  const { limits } = deployment.config;
  const decoded = decodeParameters(raw);
  if (!decoded.ok) return decoded;
  const params = validate(route.params, decoded.value, "path");
  if (!params.ok) return params;
  const parsed = parseQuery(incoming.target, boundsOf(lists.query, limits));
  if (!parsed.ok) return parsed;
  const wantsEvents =
    route.events !== undefined && incoming.method !== "HEAD" && acceptsEvents(incoming.header("accept"));
  const lastId = wantsEvents ? incoming.header("last-event-id") : undefined;
  const resumed = lastId === undefined ? {} : { [route.events?.parameter ?? ""]: lastId };
  const query = validate(route.query, { ...parsed.value, ...resumed }, "query");
  if (!query.ok) return query;
  const history = incoming.header(HISTORY_HEADER);
  const seen = readHistoryHeader(route.history === true ? history : undefined);
  if (!seen.ok) return seen;
  const expected = route.body ?? NO_BODY;
  const json = await readBody(incoming, expected, {
    limits,
    bounds: boundsOf(lists.body, limits),
    clock: deployment.clock,
  });
  if (!json.ok) return json;
  const body = json.value === undefined ? ok(undefined) : validate(expected.schema, json.value, "body");
  if (!body.ok) return body;
  return ok({
    params: params.value,
    query: query.value,
    body: route.body === undefined ? undefined : body.value,
    ...(wantsEvents ? { wantsEvents } : {}),
    ...(seen.value === undefined ? {} : { seen: seen.value }),
  });
}

export function fail(failure: Failure, trace: Trace): HttpAnswer {
  trace.code = failure.code;
  if (failure.reason !== undefined) trace.reason = failure.reason;
  return problemAnswer(failure, trace.requestId);
}
