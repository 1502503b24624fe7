import { Hono, type Context } from "hono";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { configOf, type Env } from "../env.ts";
import { isPathOf, rawPath, routingPaths } from "./address.ts";
import { countRequest } from "./analytics.ts";
import { bind, fail, waitUntilOf, type App } from "./bind.ts";
import { routeIds, routes, type RouteId } from "./contract.ts";
import { logOf } from "./deployment.ts";
import type { Handler } from "./handler.ts";
import { handlers } from "./handlers.ts";
import { logFault } from "./fault.ts";
import type { Failure } from "./problem.ts";
import { endRequest } from "./request-tracing.ts";
import { isLogged } from "./sampling.ts";
import { beginTrace, logRequest } from "./trace.ts";
import type * as Wire from "../wire/serve-wire.ts";

function makeApp(): Hono<App> {
  // Requests are routed by the path as it was sent. If it were decoded first, a percent-encoded slash in a
  // name would become a separator.
  const hono = new Hono<App>({ getPath: (request) => rawPath(request.url), router: new RegExpRouter() });

  hono.use("*", async (context, next) => {
    const trace = beginTrace(context.req.header("x-request-id"), context.req.header("traceparent"));
    context.set("trace", trace);
    if (isHost(context.req.header("host") ?? "")) await next();
    else context.res = fail(WRONG_HOST, trace);
    endRequest(trace, context.req.method, context.res.status);
    countRequest(trace, context.req.method, context.res.status, context.env.ANALYTICS);
    if (isLogged(trace, context.req.method, context.res.status, logShareOf(context.env)))
      logRequest(trace, context.req.method, context.res.status, logOf(context.env));
  });

  for (const id of routeIds) hono.on(routes[id].method, routingPaths(routes[id]), bound(id));
  const serveIn =
    (context: Context<App>) =>
    (request: Request): Response | Promise<Response> =>
      hono.fetch(request, context.env, executionOf(context));
  // Both are imported at their first use, because most isolates never serve them.
  const serveConsolePage = async (context: Context<App>): Promise<Response> => {
    const { serveConsole } = await import("../console/serve-console.ts");
    const { env, req } = context;
    return serveConsole({ request: req.raw, env, trace: context.get("trace"), serve: serveIn(context) });
  };
  for (const path of ["/console", "/console/*"]) hono.all(path, serveConsolePage);
  // In workerd, an import takes some 20 µs, also if it was made before.
  let wire: typeof Wire | undefined;
  hono.all("/grpc/*", async (context) => {
    wire ??= await import("../wire/serve-wire.ts");
    const { env, req } = context;
    const trace = context.get("trace");
    const waitUntil = waitUntilOf(context);
    return wire.serveWire({ request: req.raw, env, trace, waitUntil });
  });
  hono.notFound((context) => {
    const methods = methodsAt(rawPath(context.req.url));
    if (methods.length > 0) return methodNotAllowed(context, methods);
    return fail(
      {
        code: "NOT_FOUND",
        reason: "ROUTE_UNKNOWN",
        detail: "there is no such route; /docs lists all routes",
      },
      context.get("trace"),
    );
  });
  hono.onError((error, context) =>
    fail(logFault(error, context.get("trace"), logOf(context.env)), context.get("trace")),
  );
  return hono;
}

/** Outside of the Workers runtime, there is none. */
function executionOf(context: Context<App>): Context<App>["executionCtx"] | undefined {
  try {
    return context.executionCtx;
  } catch {
    return undefined;
  }
}

/** Logs all requests if the variables are wrong. Such a deployment only answers errors. */
function logShareOf(env: Env): number {
  try {
    return configOf(env).requestLogShare;
  } catch {
    return 1;
  }
}

/**
 * Without a proxy in front, the runtime puts this header into the URL of the request as it is. A slash in it
 * would replace the path. Two `Host` headers arrive as one, joined with a comma.
 */
const isHost = (header: string): boolean => /^[\w.~%:[\]-]*$/.test(header);

const WRONG_HOST: Failure = {
  code: "INVALID_ARGUMENT",
  detail: "`Host` must be one host name or IP address, with or without a port",
  field: "Host",
};

const paths = routeIds.map((id) => ({ method: routes[id].method, isPath: isPathOf(routes[id]) }));

const methodsAt = (sent: string): string[] =>
  paths.filter(({ isPath }) => isPath(sent)).map(({ method }) => method);

const bound = (id: RouteId): ReturnType<typeof bind> => bind(id, handlers[id] as Handler<RouteId>);

function methodNotAllowed(context: Context<App>, methods: readonly string[]): Response {
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return fail(
    { code: "INVALID_ARGUMENT", status: 405, detail: `this path only supports ${allow}`, headers: { allow } },
    context.get("trace"),
  );
}

/** Answers and logs something that could not be parsed as a request. */
export function refuseUnparsed(failure: Failure, env: Env): Response {
  const trace = beginTrace();
  const answer = fail(failure, trace);
  const method = "none";
  if (isLogged(trace, method, answer.status, logShareOf(env)))
    logRequest(trace, method, answer.status, logOf(env));
  return answer;
}

/** Serves every route of the contract, and turns every failure into a problem. */
export const app = makeApp();
