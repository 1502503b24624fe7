import { Hono, type Context } from "hono";
import { rawPath, routingPath } from "./address.ts";
import { bind, fail, type App } from "./bind.ts";
import { routeIds, routes, type RouteId } from "./contract.ts";
import type { Plan } from "./handler.ts";
import { plans } from "./plans.ts";
import { logFault } from "./fault.ts";
import { secured } from "./headers.ts";
import { beginTrace, logRequest } from "./trace.ts";

function makeApp(): Hono<App> {
  // Routed by the path as it was sent: a percent-encoded slash must not become one before the route is known.
  const hono = new Hono<App>({ getPath: (request) => rawPath(request.url) });

  hono.use("*", async (context, next) => {
    const trace = beginTrace(context.req.header("x-request-id"));
    context.set("trace", trace);
    await next();
    context.res = secured(context.res, trace.requestId);
    if (context.res.status >= 500 || context.env.LEASEHOLD_REQUEST_LOG !== "errors") logRequest(trace, context.req.method, context.res.status);
  });

  const methods = new Map<string, string[]>();
  for (const id of routeIds) {
    const path = routingPath(routes[id]);
    methods.set(path, [...(methods.get(path) ?? []), routes[id].method]);
    hono.on(routes[id].method, path, bound(id));
  }
  for (const [path, allowed] of methods) hono.all(path, (context) => methodNotAllowed(context, allowed));

  hono.notFound((context) => fail({ code: "NOT_FOUND", detail: "there is no such route; see /docs" }, context.get("trace")));
  hono.onError((error, context) => fail(logFault(error, context.get("trace")), context.get("trace")));
  return hono;
}

const bound = (id: RouteId): ReturnType<typeof bind> => bind(id, plans[id] as Plan<RouteId>);

function methodNotAllowed(context: Context<App>, methods: readonly string[]): Response {
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return fail({ code: "INVALID_ARGUMENT", status: 405, detail: `this path knows ${allow}`, headers: { allow } }, context.get("trace"));
}

/** The HTTP side: every route of the contract, and one shape for everything that goes wrong. */
export const app = makeApp();
