import { configOf, type Env } from "../env.ts";
import type { WaitUntil } from "../runtime.ts";
import { pathOf } from "./address.ts";
import { countRequest, endRequest, isLogged, beginTrace, logRequest } from "./trace.ts";
import { bind, fail, type Bound } from "./bind.ts";
import { routeIds, type RouteId } from "./contract.ts";
import { logOf } from "../isolate/deployment.ts";
import { handlers } from "./handlers.ts";
import { logFault, type Failure } from "./problem.ts";
import type { HttpAnswer, Incoming, RequestContext } from "./incoming.ts";
import { findRoute, methodsAt } from "./route-table.ts";
import type * as Wire from "../wire/serve-wire.ts";

const bound = Object.fromEntries(routeIds.map((id) => [id, bind(id, handlers[id])])) as Record<
  RouteId,
  Bound
>;

/** Serves every route of the contract, the console and the wire, and turns every failure into a problem. */
export async function serve(incoming: Incoming, env: Env, waitUntil: WaitUntil): Promise<HttpAnswer> {
  const { method } = incoming;
  const trace = beginTrace(incoming.header("x-request-id"), incoming.header("traceparent"));
  let answer: HttpAnswer;
  try {
    answer = await route({ incoming, env, trace, waitUntil });
  } catch (error) {
    answer = fail(logFault(error, trace, logOf(env)), trace);
  }
  const { status, body } = answer;
  endRequest(trace, method, status);
  countRequest(trace, method, status, env.ANALYTICS);
  if (isLogged(trace, method, status, logShareOf(env))) logRequest(trace, method, status, logOf(env));
  if (method !== "HEAD") return answer;
  if (body instanceof ReadableStream) void body.cancel();
  return { ...answer, body: null };
}

// In workerd, an import takes some 20 µs, also if it was made before.
let wire: typeof Wire | undefined;

async function route(context: RequestContext): Promise<HttpAnswer> {
  const { incoming, env, trace, waitUntil } = context;
  if (!isHost(incoming.header("host") ?? "")) return fail(WRONG_HOST, trace);
  const path = pathOf(incoming.target);
  const found = findRoute(incoming.method, path);
  if (found !== undefined) return bound[found.id](context, found.parameters);
  // Both are imported at their first use, because most isolates never serve them.
  if (isBelow("/console", path)) {
    const { serveConsole } = await import("../console/serve-console.ts");
    return serveConsole(context, (call) => serve(call, env, waitUntil));
  }
  if (isBelow("/grpc", path)) {
    wire ??= await import("../wire/serve-wire.ts");
    return wire.serveWire(context);
  }
  const methods = methodsAt(path);
  return fail(methods.length > 0 ? methodNotAllowed(methods) : ROUTE_UNKNOWN, trace);
}

const isBelow = (folder: string, path: string): boolean =>
  path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");

/** Logs all requests if the variables are wrong. Such a deployment only answers errors. */
function logShareOf(env: Env): number {
  try {
    return configOf(env).requestLogShare;
  } catch {
    return 1;
  }
}

/**
 * Without a proxy in front, the runtime of Workers puts this header into the URL of the request as it is. A
 * slash in it would replace the path. Two `Host` headers arrive as one, joined with a comma.
 */
const isHost = (header: string): boolean => /^[\w.~%:[\]-]*$/.test(header);

export const WRONG_HOST: Failure = {
  code: "INVALID_ARGUMENT",
  detail: "`Host` must be one host name or IP address, with or without a port",
  field: "Host",
};

const ROUTE_UNKNOWN: Failure = {
  code: "NOT_FOUND",
  reason: "ROUTE_UNKNOWN",
  detail: "there is no such route; /docs lists all routes",
};

function methodNotAllowed(methods: readonly string[]): Failure {
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return {
    code: "INVALID_ARGUMENT",
    status: 405,
    detail: `this path only supports ${allow}`,
    headers: { allow },
  };
}

/** Answers and logs something that could not be parsed as a request. */
export function refuseUnparsed(failure: Failure, env: Env): HttpAnswer {
  const trace = beginTrace();
  const answer = fail(failure, trace);
  const method = "none";
  if (isLogged(trace, method, answer.status, logShareOf(env)))
    logRequest(trace, method, answer.status, logOf(env));
  return answer;
}
