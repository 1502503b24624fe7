import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
} from "@connectrpc/connect";
import {
  universalServerRequestFromFetch,
  universalServerResponseToFetch,
  type UniversalHandler,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { Env } from "../env.ts";
import { rawPath } from "../http/address.ts";
import { readInTime } from "../http/body.ts";
import { deploymentOf, logOf, type Deployment } from "../http/deployment.ts";
import { logFault } from "../http/fault.ts";
import { secured } from "../http/headers.ts";
import { InternalApi, type Problem, type Serve } from "../http/internal-api.ts";
import { problemOf } from "../http/problem.ts";
import type { Trace } from "../http/trace.ts";
import type { WaitUntil } from "../runtime.ts";
import { claimService } from "./claim-service.ts";
import { cellService } from "./cells.ts";
import { classifyService } from "./classify-service.ts";
import { CellService, ClaimService, ClassifyService } from "./protobuf.ts";
import { callerKey, oldestKey, type Caller } from "./wire-call.ts";
import { wireError } from "./wire-error.ts";
import { framingOf, isMessage, jsonOptions, plainBody } from "./wire-message.ts";

/** A request of the wire, and what it runs in. */
export interface WireRequest {
  request: Request;
  env: Env;
  trace: Trace;
  waitUntil: WaitUntil;
  /** Serves a request of the API inside the process. */
  serve: Serve;
}

const WIRE_PATH = "/grpc";

/** The route of a request whose message was not decoded. */
const UNREAD = "wire";

/** Why a request is refused before its message is read. */
const refusalKey = createContextKey<ConnectError | undefined>(undefined);

const MAX_TIMEOUT_MS = 600_000;

const router = createConnectRouter({
  grpc: false,
  maxTimeoutMs: MAX_TIMEOUT_MS,
  jsonOptions,
  interceptors: [
    (next) => async (request) => {
      try {
        return await next(request);
      } catch (error) {
        const caller = request.contextValues.get(callerKey);
        if (error instanceof ConnectError || caller === undefined) throw error;
        const { trace } = caller;
        throw refusalOf({ ok: false, refusal: logFault(error, trace, caller.log) }, trace);
      }
    },
  ],
  requestGate: ({ values }) => {
    const refusal = values.get(refusalKey);
    if (refusal !== undefined) throw refusal;
  },
})
  .service(ClaimService, claimService)
  .service(ClassifyService, classifyService)
  .service(CellService, cellService);

const handlers = new Map<string, UniversalHandler>(
  router.handlers.map((handler) => [`${WIRE_PATH}${handler.requestPath}`, handler]),
);

/** Serves every path under `/grpc`, as Connect or as gRPC-Web. */
export async function serveWire(given: WireRequest): Promise<Response> {
  const { request, env, trace } = given;
  trace.route = UNREAD;
  const handler = handlers.get(rawPath(request.url));
  if (handler === undefined) return unknownMethod(request, trace);
  const deployment = deploymentOf(env);
  const { limits } = deployment.config;
  const caller = await callerOf(given, deployment);
  const framing = request.method === "POST" ? framingOf(request.headers) : undefined;
  let message: Result<{ bytes: Uint8Array; isOldest: boolean } | undefined> = ok(undefined);
  if (caller.ok && framing !== undefined) {
    const body = await readInTime(request, limits, deployment.clock);
    message = body.ok ? await plainBody(body.value, framing, handler.method.name, limits.bodyBytes) : body;
  }
  const failed = caller.ok ? message : caller;
  const read = failed.ok ? failed.value : undefined;
  const body = read?.bytes;
  const ask = async (refusal: ConnectError | undefined): Promise<UniversalServerResponse> => {
    const values = createContextValues()
      .set(refusalKey, refusal)
      .set(oldestKey, read?.isOldest === true);
    if (caller.ok) values.set(callerKey, caller.value);
    return handler({
      ...universalServerRequestFromFetch(plainRequest(request, body), {}),
      contextValues: values,
    });
  };
  const answer = await ask(failed.ok ? undefined : refusalOf(failed, trace));
  // Connect calls it a fault of the server if a message can't be decoded.
  const isUnread = trace.route === UNREAD && body !== undefined && framing !== undefined;
  const isRefused = isUnread && !isMessage(body, framing, handler.method.input);
  return answered(
    universalServerResponseToFetch(isRefused ? await ask(refusalOf(UNREADABLE, trace)) : answer),
    trace,
  );
}

const UNREADABLE = refused("INVALID_ARGUMENT", "the body is not a message of this method", { field: "body" });

/** Verifies the key before anything of the body is read. */
async function callerOf(
  { request, trace, waitUntil, serve }: WireRequest,
  deployment: Deployment,
): Promise<Result<Caller>> {
  const signed = deployment.signed();
  if (!signed.ok) return signed;
  const authorization = request.headers.get("authorization") ?? undefined;
  const principal = await signed.value.keys.verify(authorization, deployment.clock.now());
  if (!principal.ok) return principal;
  trace.principal = principal.value;
  const traceparent = request.headers.get("traceparent");
  const headers = traceparent === null ? {} : { traceparent };
  const api = new InternalApi(serve, principal.value, trace.requestId, headers);
  const log = logOf(deployment.env);
  return ok({ deployment, principal: principal.value, api, trace, waitUntil, log });
}

function refusalOf(failed: Extract<Result<unknown>, { ok: false }>, trace: Trace): ConnectError {
  trace.code = failed.refusal.code;
  return wireError(problemOf(failed.refusal, trace.requestId) as unknown as Problem, trace.requestId);
}

/** The request without its compression, which has been undone. */
function plainRequest(request: Request, body: Uint8Array | undefined): Request {
  if (body === undefined && request.body === null) return request;
  const headers = new Headers(request.headers);
  for (const name of ["content-encoding", "content-length", "grpc-encoding"]) headers.delete(name);
  return new Request(request.url, {
    method: request.method,
    headers,
    // Nothing was read of a body that is refused.
    body: (body ?? new Uint8Array()) as Uint8Array<ArrayBuffer>,
    signal: request.signal,
  });
}

/** Clients of gRPC-Web understand an answer without a body, and those of Connect its status. */
function unknownMethod(request: Request, trace: Trace): Response {
  trace.code = "NOT_FOUND";
  const error = new ConnectError("there is no such method", Code.Unimplemented);
  const isGrpcWeb = (request.headers.get("content-type") ?? "").startsWith("application/grpc-web");
  const headers: Record<string, string> = isGrpcWeb
    ? {
        "content-type": request.headers.get("content-type") ?? "",
        "grpc-status": String(error.code),
        "grpc-message": encodeURIComponent(error.rawMessage),
      }
    : { "content-type": "application/json" };
  const body = isGrpcWeb ? null : JSON.stringify({ code: "unimplemented", message: error.rawMessage });
  return answered(new Response(body, { status: isGrpcWeb ? 200 : 404, headers }), trace);
}

function answered(response: Response, trace: Trace): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(secured({}, trace.requestId)))
    if (!headers.has(name)) headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}
