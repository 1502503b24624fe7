import { isAllowed, type Principal } from "../auth/principal.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import { accessRefusal, formatRefusal, notAllowed } from "./access-refusal.ts";
import { routes, type RouteId, type Routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { Call } from "./handler.ts";
import { handlers } from "./handlers.ts";
import type { AnswerOf, Sent } from "./internal-api.ts";
import { boundsOf, findLongList, NO_BODY, requestListsOf } from "./list-limits.ts";
import type { PageTokens } from "./page-token.ts";
import type { Trace } from "./trace.ts";
import { validate } from "./validate.ts";

/** Who calls routes, with a key that is verified, and what the calls run in. */
export interface RouteCaller {
  deployment: Deployment;
  principal: Principal;
  tokens: PageTokens;
  trace: Trace;
  waitUntil: WaitUntil;
}

/**
 * Calls a route with values instead of a request. It takes the steps of `bind` that follow the check of the
 * key: role and cell (403), form and limits of lists (400), revocation (401), then the handler. The values
 * are those of the JSON: parameters are text, and the body is what `JSON.parse` makes. A parameter of the
 * query that is undefined or empty is not sent.
 */
export async function callRoute<Id extends RouteId>(
  routeId: Id,
  { deployment, principal, tokens, trace, waitUntil }: RouteCaller,
  sent: Sent = {},
): Promise<Result<AnswerOf<Id>>> {
  const route: Route = routes[routeId];
  const cell = sent.params?.["cell"];
  if (!isAllowed(principal, route.roles, cell)) return refused("PERMISSION_DENIED", notAllowed(principal));
  const input = inputOf(route, sent, deployment);
  if (!input.ok) return input;
  const refusal =
    (await accessRefusal(deployment, principal, cell, route.group === "parts", waitUntil)) ??
    (await formatRefusal(deployment, route, waitUntil));
  if (refusal !== undefined) return { ok: false, refusal };
  const call = { routeId, requestId: trace.requestId, waitUntil, principal, tokens, ...input.value };
  const answer = await deployment.placed(async (placed) =>
    // The input has the types of this route's schemas, which this generic code cannot express.
    handlers[routeId]({ ...call, deployment: placed } as unknown as Call<Routes[Id]>),
  );
  deployment.uses.note(principal, answer, waitUntil);
  if (!answer.ok) return answer;
  if (!("body" in answer.value)) throw new Error(`${routeId} has answered events, which nobody asked for`);
  return ok(answer.value.body as AnswerOf<Id>);
}

type Input = Record<"params" | "query" | "body", unknown>;

function inputOf(
  route: Route,
  { params = {}, query = {}, body }: Sent,
  { config: { limits } }: Deployment,
): Result<Input> {
  const lists = requestListsOf(route);
  const named = validate(route.params, params, "path");
  if (!named.ok) return named;
  const bounds = boundsOf(lists.query, limits);
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "")
      given[name] = bounds.items(name) === undefined ? value : [value].flat();
  const long =
    findLongList(given, lists.query.keys(), bounds) ??
    findLongList(body, lists.body.keys(), boundsOf(lists.body, limits));
  if (long !== undefined)
    return refused("INVALID_ARGUMENT", `\`${long.field}\` ${long.message}`, { field: long.field });
  const asked = validate(route.query, given, "query");
  if (!asked.ok) return asked;
  const { schema, required } = route.body ?? NO_BODY;
  const content = body === undefined && !required ? ok(undefined) : validate(schema, body, "body");
  if (!content.ok) return content;
  return ok({ params: named.value, query: asked.value, body: content.value });
}
