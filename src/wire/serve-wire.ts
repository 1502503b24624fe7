import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
} from "@connectrpc/connect";
import {
  createAsyncIterable,
  type UniversalHandler,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { Env } from "../env.ts";
import { rawPath } from "../http/address.ts";
import { authenticate } from "../http/authenticate.ts";
import { joined, readInTime, sizeBeforeReading } from "../http/body.ts";
import { deploymentOf, logOf, type Deployment } from "../http/deployment.ts";
import { secured } from "../http/headers.ts";
import type { Trace } from "../http/trace.ts";
import type { WaitUntil } from "../runtime.ts";
import { connectBinary } from "./connect-binary.ts";
import { deadlineFault, MAX_TIMEOUT_MS } from "./deadline.ts";
import { faultText } from "./message-fault.ts";
import { methods, type WireMethod } from "./methods.ts";
import { refusalOf, type Caller } from "./wire-call.ts";
import { faultOf, framingOf, jsonOptions, plainBody, queryMessage, type Sent } from "./wire-message.ts";

/** A request of the wire, and what it runs in. */
export interface WireRequest {
  request: Request;
  env: Env;
  trace: Trace;
  waitUntil: WaitUntil;
}

const WIRE_PATH = "/grpc";

/** Undefined if the key of the request is not valid. Such a call is refused before its message is read. */
const callerKey = createContextKey<Caller | undefined>(undefined);
const oldestKey = createContextKey(false);
/** Why a request is refused before its message is read. */
const refusalKey = createContextKey<ConnectError | undefined>(undefined);

const router = createConnectRouter({
  grpc: false,
  maxTimeoutMs: MAX_TIMEOUT_MS,
  jsonOptions,
  requestGate: ({ values }) => {
    const refusal = values.get(refusalKey);
    if (refusal !== undefined) throw refusal;
  },
});
for (const { desc, call } of methods)
  router.rpc(desc, (request, { values, requestHeader, timeoutMs, signal }) => {
    const caller = values.get(callerKey);
    if (caller === undefined) throw new Error("a call without a caller");
    const deadline = timeoutMs() === undefined ? undefined : signal;
    return call(request, { caller, requestHeader, isOldest: values.get(oldestKey), deadline });
  });

interface Served {
  method: WireMethod;
  /** The method behind all protocols of Connect-ES. */
  handler: UniversalHandler;
}

const served = new Map<string, Served>(
  methods.flatMap((method) => {
    const handler = router.handlers.find((each) => each.method === method.desc);
    return handler === undefined ? [] : [[`${WIRE_PATH}${handler.requestPath}`, { method, handler }]];
  }),
);

/** Serves every path under `/grpc`, as Connect or as gRPC-Web. */
export async function serveWire(given: WireRequest): Promise<Response> {
  const { request, env, trace, waitUntil } = given;
  const found = served.get(rawPath(request.url));
  if (found === undefined) return unknownMethod(request, trace);
  trace.route = `wire.${found.method.desc.name}`;
  const deployment = deploymentOf(env);
  const caller = await callerOf(given, deployment);
  if (!caller.ok) return answerCall(given, found, deployment, caller);
  const sizeBytes = sizeBeforeReading(request);
  const run = await deployment.fairShares.run(caller.value.principal, sizeBytes, waitUntil, () =>
    answerCall(given, found, deployment, caller),
  );
  return run.ok ? run.value : answerCall(given, found, deployment, run);
}

/** Reads the message of a call and carries it out, or answers why its caller is refused. */
async function answerCall(
  { request, trace }: WireRequest,
  { method, handler }: Served,
  { clock, config: { limits } }: Deployment,
  caller: Result<Caller>,
): Promise<Response> {
  const framing = request.method === "POST" ? framingOf(request.headers) : undefined;
  const isText = framing?.isText === true;
  let header = isText ? binaryHeaders(request) : request.headers;
  let isOldest = false;
  const read = async (): Promise<Result<Sent | undefined>> => {
    if (!caller.ok) return caller;
    const late = deadlineFault(request.headers);
    if (late !== undefined) return late;
    if (framing === undefined) return request.method === "GET" ? queryMessage(request.url) : ok(undefined);
    const body = await readInTime(request, limits, clock);
    if (!body.ok) return body;
    const plain = await plainBody(body.value, framing, method.desc.name, limits.bodyBytes);
    if (!plain.ok) return plain;
    const { bytes } = plain.value;
    isOldest = plain.value.isOldest;
    if (bytes !== body.value) header = plainHeaders(header);
    return ok({ bytes, isEnveloped: framing.isEnveloped, isBinary: framing.isBinary });
  };
  let sent = await read();
  // The library would misread a binary message, so it is searched before.
  if (sent.ok && sent.value?.isBinary === true) sent = refuseFault(sent.value, method) ?? sent;
  if (caller.ok && sent.ok && sent.value !== undefined && connectBinary.isFor(request)) {
    const call = { message: sent.value.bytes, isOldest, caller: caller.value };
    const direct = await connectBinary.answer(method, request, call);
    if (direct !== undefined) {
      const { status, header: own, body: bytes } = direct;
      return new Response(bytes as Uint8Array<ArrayBuffer>, {
        status,
        headers: secured(own, trace.requestId),
      });
    }
  }
  const ask = (refusal: ConnectError | undefined): Promise<UniversalServerResponse> => {
    const values = createContextValues().set(refusalKey, refusal).set(oldestKey, isOldest);
    if (caller.ok) values.set(callerKey, caller.value);
    return handler({
      httpVersion: "",
      method: request.method,
      url: request.url,
      header,
      // Nothing was read of a body that is refused.
      body: createAsyncIterable([(sent.ok ? sent.value?.bytes : undefined) ?? new Uint8Array()]),
      signal: request.signal,
      contextValues: values,
    });
  };
  const answer = await ask(sent.ok ? undefined : refusalOf(sent.refusal, trace));
  // Connect calls it a fault of the server if a message in JSON can't be decoded.
  const isUnread = caller.ok && !caller.value.isRead;
  const unread =
    isUnread && sent.ok && sent.value !== undefined ? refuseFault(sent.value, method) : undefined;
  const told = unread === undefined ? answer : await ask(refusalOf(unread.refusal, trace));
  return responseOf(told, isText, trace);
}

/** Refuses a message that cannot be read, by the field at which that is so (W13). */
function refuseFault(sent: Sent, { desc }: WireMethod): Extract<Result<never>, { ok: false }> | undefined {
  const fault = faultOf(sent, desc.input);
  if (fault === undefined) return undefined;
  return refused("INVALID_ARGUMENT", faultText(fault), { field: fault.field === "" ? "body" : fault.field });
}

/** Verifies the key before anything of the body is read. */
async function callerOf(
  { request, trace, waitUntil }: WireRequest,
  deployment: Deployment,
): Promise<Result<Caller>> {
  const authenticated = await authenticate(deployment, request, waitUntil, "wire");
  if (authenticated.ok) trace.principal = authenticated.value.principal;
  const traced = deployment.tracing?.begin(trace, waitUntil);
  if (!authenticated.ok) return authenticated;
  return ok({
    deployment: traced === undefined ? deployment : deployment.tracedBy(traced),
    ...authenticated.value,
    trace,
    waitUntil,
    log: logOf(deployment.env),
    isRead: false,
  });
}

/** The headers of a request whose compression has been undone, and whose length may have changed. */
function plainHeaders(sent: Headers): Headers {
  const headers = new Headers(sent);
  for (const name of ["content-encoding", "content-length", "grpc-encoding"]) headers.delete(name);
  return headers;
}

/** Connect has no base64, so it gets the request as if it had been binary. */
function binaryHeaders({ headers: sent }: Request): Headers {
  const headers = new Headers(sent);
  headers.set("content-type", "application/grpc-web+proto");
  return headers;
}

/** Clients of gRPC-Web understand an answer without a body, and those of Connect its status. */
function unknownMethod(request: Request, trace: Trace): Response {
  trace.code = "NOT_FOUND";
  const error = new ConnectError("there is no such method", Code.Unimplemented);
  const type = request.headers.get("content-type") ?? "";
  const isGrpcWeb = type.startsWith("application/grpc-web");
  const own: Record<string, string> = isGrpcWeb
    ? {
        "content-type": type,
        "grpc-status": String(error.code),
        "grpc-message": encodeURIComponent(error.rawMessage),
      }
    : { "content-type": "application/json" };
  const body = isGrpcWeb ? null : JSON.stringify({ code: "unimplemented", message: error.rawMessage });
  return new Response(body, { status: isGrpcWeb ? 200 : 404, headers: secured(own, trace.requestId) });
}

/** No method is a stream, so the whole answer is there. */
async function responseOf(
  { status, header, body }: UniversalServerResponse,
  isText: boolean,
  trace: Trace,
): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
  }
  const own = Object.fromEntries(header ?? []);
  const whole = joined(chunks, length);
  if (isText) own["content-type"] = "application/grpc-web-text+proto";
  return new Response(isText ? base64Encode(whole) : whole, {
    status,
    headers: secured(own, trace.requestId),
  });
}
