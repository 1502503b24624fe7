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
import { ok, refused, type Result } from "../kernel/refusal.ts";
import { pathOf } from "../api/address.ts";
import { authenticate } from "../api/authenticate.ts";
import { joined, readInTime, sizeBeforeReading } from "../api/body.ts";
import { deploymentOf, logOf, type Deployment } from "../isolate/deployment.ts";
import { secured } from "../api/http-answer.ts";
import type { HttpAnswer, Incoming, RequestContext } from "../api/incoming.ts";
import type { Trace } from "../api/trace.ts";
import { connectBinary, deadlineFault, MAX_TIMEOUT_MS } from "./connect-binary.ts";
import { faultText } from "./message-fault.ts";
import { methods, type WireMethod } from "./methods.ts";
import { refusalOf, type Caller } from "./wire-call.ts";
import { faultOf, framingOf, jsonOptions, plainBody, queryMessage, type Sent } from "./wire-message.ts";

const WIRE_PATH = "/grpc";
/** Connect takes whole URLs, of which it only reads the query. */
const URL_OF_ALL = "https://wire.invalid";

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

const served: ReadonlyMap<string, Served> = new Map(
  methods.flatMap((method) => {
    const handler = router.handlers.find((each) => each.method === method.desc);
    return handler === undefined ? [] : [[`${WIRE_PATH}${handler.requestPath}`, { method, handler }]];
  }),
);

/** Serves every path under `/grpc`, as Connect or as gRPC-Web. */
export async function serveWire(given: RequestContext): Promise<HttpAnswer> {
  const { incoming, env, trace, waitUntil } = given;
  const found = served.get(pathOf(incoming.target));
  if (found === undefined) return unknownMethod(incoming, trace);
  trace.route = `wire.${found.method.desc.name}`;
  const deployment = deploymentOf(env);
  const caller = await callerOf(given, deployment);
  if (!caller.ok) return answerCall(given, found, deployment, caller);
  const sizeBytes = sizeBeforeReading(incoming);
  const run = await deployment.fairShares.run(caller.value.principal, sizeBytes, waitUntil, () =>
    answerCall(given, found, deployment, caller),
  );
  return run.ok ? run.value : answerCall(given, found, deployment, run);
}

/** Reads the message of a call and carries it out, or answers why its caller is refused. */
async function answerCall(
  { incoming, trace }: RequestContext,
  { method, handler }: Served,
  { clock, config: { limits } }: Deployment,
  caller: Result<Caller>,
): Promise<HttpAnswer> {
  const { method: httpMethod } = incoming;
  const url = URL_OF_ALL + incoming.target;
  const framing = httpMethod === "POST" ? framingOf(incoming) : undefined;
  const isText = framing?.isText === true;
  let isPlain = true;
  let isOldest = false;
  const read = async (): Promise<Result<Sent | undefined>> => {
    if (!caller.ok) return caller;
    const late = deadlineFault(incoming);
    if (late !== undefined) return late;
    if (framing === undefined) return httpMethod === "GET" ? queryMessage(url) : ok(undefined);
    const body = await readInTime(incoming, limits, clock);
    if (!body.ok) return body;
    const plain = await plainBody(body.value, framing, method.desc.name, limits.bodyBytes);
    if (!plain.ok) return plain;
    const { bytes } = plain.value;
    isOldest = plain.value.isOldest;
    isPlain = bytes === body.value;
    return ok({ bytes, isEnveloped: framing.isEnveloped, isBinary: framing.isBinary });
  };
  let sent = await read();
  // The library would misread a binary message, so it is searched before.
  if (sent.ok && sent.value?.isBinary === true) sent = refuseFault(sent.value, method) ?? sent;
  if (caller.ok && sent.ok && sent.value !== undefined && connectBinary.isFor(incoming)) {
    const call = { message: sent.value.bytes, isOldest, caller: caller.value };
    const direct = await connectBinary.answer(method, incoming, call);
    if (direct !== undefined) {
      const { status, header: own, body: bytes } = direct;
      return { status, headers: secured(own, trace.requestId), body: bytes };
    }
  }
  const ask = (refusal: ConnectError | undefined): Promise<UniversalServerResponse> => {
    const values = createContextValues().set(refusalKey, refusal).set(oldestKey, isOldest);
    if (caller.ok) values.set(callerKey, caller.value);
    return handler({
      httpVersion: "",
      method: httpMethod,
      url,
      header: headersFor(incoming, isText, isPlain),
      // Nothing was read of a body that is refused.
      body: createAsyncIterable([(sent.ok ? sent.value?.bytes : undefined) ?? new Uint8Array()]),
      signal: incoming.closed,
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
  { incoming, trace, waitUntil }: RequestContext,
  deployment: Deployment,
): Promise<Result<Caller>> {
  const authenticated = await authenticate(deployment, incoming, waitUntil, "wire");
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

/**
 * The headers for Connect. It has no base64, so it gets the request as if it had been binary. If the
 * compression has been undone, or the message was rewritten, the headers don't speak of the body.
 */
function headersFor(incoming: Incoming, isText: boolean, isPlain: boolean): Headers {
  if (!isText && isPlain) return incoming.headers();
  const headers = new Headers(incoming.headers());
  if (isText) headers.set("content-type", "application/grpc-web+proto");
  if (!isPlain)
    for (const name of ["content-encoding", "content-length", "grpc-encoding"]) headers.delete(name);
  return headers;
}

/** Clients of gRPC-Web understand an answer without a body, and those of Connect its status. */
function unknownMethod(incoming: Incoming, trace: Trace): HttpAnswer {
  trace.code = "NOT_FOUND";
  const error = new ConnectError("there is no such method", Code.Unimplemented);
  const type = incoming.header("content-type") ?? "";
  const isGrpcWeb = type.startsWith("application/grpc-web");
  const own: Record<string, string> = isGrpcWeb
    ? {
        "content-type": type,
        "grpc-status": String(error.code),
        "grpc-message": encodeURIComponent(error.rawMessage),
      }
    : { "content-type": "application/json" };
  const body = isGrpcWeb ? null : JSON.stringify({ code: "unimplemented", message: error.rawMessage });
  return { status: isGrpcWeb ? 200 : 404, headers: secured(own, trace.requestId), body };
}

/** No method is a stream, so the whole answer is there. */
async function responseOf(
  { status, header, body }: UniversalServerResponse,
  isText: boolean,
  trace: Trace,
): Promise<HttpAnswer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
  }
  const own = Object.fromEntries(header ?? []);
  const whole = joined(chunks, length);
  if (isText) own["content-type"] = "application/grpc-web-text+proto";
  return { status, headers: secured(own, trace.requestId), body: isText ? base64Encode(whole) : whole };
}
