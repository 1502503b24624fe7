/** Turns a native call into one of gRPC-Web for the coordinator. The message stays as its client made it. */
import { status, Metadata, type StatusObject } from "@grpc/grpc-js";
import { NotConnected, MAX_ANSWER_BYTES, type Send, type WebRequest, type WebResponse } from "./send.ts";

export interface NativeCall {
  /** `/<package>.<Service>/<Method>` */
  path: string;
  message: Buffer;
  metadata: Metadata;
  /** When the client stops waiting, in milliseconds of `Date.now()`. Infinity: never. */
  deadlineMs: number;
  /** A client certificate in DER, verified by TLS. */
  certificate: Buffer | undefined;
  /** Aborts when the client has cancelled the call, or its connection has ended. */
  signal: AbortSignal;
}

const FRAME_BYTES = 5;

/** The coordinator refuses longer ones. Clients that wait longer get their answer all the same. */
const MAX_TIMEOUT_MS = 600_000;

/**
 * What a client sends that is not for the coordinator: headers of its own connection, and those by which a
 * proxy says who the client is.
 */
const WITHHELD: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "client-cert",
  "client-cert-chain",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "forwarded",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
]);

const isForwarded = (name: string): boolean =>
  !WITHHELD.has(name) &&
  !/^(?:grpc-|x-grpc-|x-forwarded-|proxy-|cf-connecting-|cf-ipcountry)|-bin$/.test(name);

/** Makes the call. It never throws. */
export async function forward(call: NativeCall, send: Send): Promise<WebAnswer> {
  try {
    return readWebAnswer(await send(requestOf(call)));
  } catch (error) {
    if (call.signal.aborted) return failed(status.CANCELLED, "the client has cancelled the call");
    return failed(status.UNAVAILABLE, error instanceof NotConnected ? NOTHING_DONE : NO_ANSWER);
  }
}

const NOTHING_DONE = "the coordinator cannot be reached; nothing was done";
const NO_ANSWER = "the coordinator did not answer; whether the call had an effect is unknown";

function requestOf({ path, message, metadata, deadlineMs, certificate, signal }: NativeCall): WebRequest {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(metadata.getMap()))
    if (typeof value === "string" && isForwarded(name)) headers[name] = value;
  headers["content-type"] = "application/grpc-web+proto";
  headers["content-length"] = String(FRAME_BYTES + message.length);
  headers["x-grpc-web"] = "1";
  if (Number.isFinite(deadlineMs)) {
    const leftMs = Math.ceil(Math.min(MAX_TIMEOUT_MS, Math.max(0, deadlineMs - Date.now())));
    headers["grpc-timeout"] = `${leftMs}m`;
  }
  const body = Buffer.allocUnsafe(FRAME_BYTES + message.length);
  body.writeUInt8(0, 0);
  body.writeUInt32BE(message.length, 1);
  message.copy(body, FRAME_BYTES);
  return { method: "POST", path: `/grpc${path}`, headers, body, certificate, signal };
}

/* An answer of gRPC-Web: a message, and the status that native gRPC sends as trailers. */

interface WebAnswer {
  /** Undefined if the call failed. */
  message: Buffer | undefined;
  status: StatusObject;
}

/** The log of the coordinator has the call by this id. */
const REQUEST_ID = "x-request-id";

const HEADER_BYTES = 5;
const TRAILERS = 0x80;

/** An answer that is no gRPC-Web, such as that of a proxy, becomes a status. */
function readWebAnswer({ status: http, headers, body }: WebResponse): WebAnswer {
  const type = textOf(headers, "content-type") ?? "";
  if (http !== 200 || !type.startsWith("application/grpc-web"))
    return failed(codeOfHttp(http), `the coordinator answered HTTP ${http}`);
  if (body === undefined)
    return failed(status.RESOURCE_EXHAUSTED, `the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
  const frames = framesOf(body);
  if (frames === undefined) return failed(status.UNAVAILABLE, INCOMPLETE);
  const trailers = frames.trailers ?? headers;
  if (textOf(trailers, "grpc-status") === undefined) return failed(status.UNAVAILABLE, INCOMPLETE);
  const made = statusOf(trailers);
  const requestId = textOf(headers, REQUEST_ID);
  if (requestId !== undefined) made.metadata.set(REQUEST_ID, requestId);
  if (made.code !== status.OK) return { message: undefined, status: made };
  if (frames.message === undefined) return failed(status.UNAVAILABLE, INCOMPLETE);
  return { message: frames.message, status: made };
}

type Headers = WebResponse["headers"];

const textOf = (headers: Headers, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
};

const INCOMPLETE = "the answer of the coordinator is incomplete; whether the call had an effect is unknown";

const failed = (code: status, details: string): WebAnswer => ({
  message: undefined,
  status: { code, details, metadata: new Metadata() },
});

/** As gRPC over HTTP/2 defines it for answers of proxies. */
function codeOfHttp(http: number): status {
  switch (http) {
    case 400:
      return status.INTERNAL;
    case 401:
      return status.UNAUTHENTICATED;
    case 403:
      return status.PERMISSION_DENIED;
    case 404:
      return status.UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
      return status.UNAVAILABLE;
    default:
      return status.UNKNOWN;
  }
}

interface Frames {
  message?: Buffer;
  trailers?: Headers;
}

/** Undefined: a frame is cut, or there are two messages. */
function framesOf(body: Buffer): Frames | undefined {
  const frames: Frames = {};
  for (let offset = 0; offset < body.length;) {
    if (offset + HEADER_BYTES > body.length) return undefined;
    const end = offset + HEADER_BYTES + body.readUInt32BE(offset + 1);
    if (end > body.length) return undefined;
    const content = body.subarray(offset + HEADER_BYTES, end);
    if (((body[offset] ?? 0) & TRAILERS) === TRAILERS) frames.trailers = trailersOf(content);
    else if (frames.message === undefined) frames.message = content;
    else return undefined;
    offset = end;
  }
  return frames;
}

function trailersOf(content: Buffer): Headers {
  const trailers: Record<string, string> = {};
  for (const line of content.toString("latin1").split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    trailers[name] = Object.hasOwn(trailers, name) ? `${trailers[name]}, ${value}` : value;
  }
  return trailers;
}

const BINARY = "-bin";

/** The details of an error are in `grpc-status-details-bin`, so they are kept as metadata. */
function statusOf(trailers: Headers): StatusObject {
  const metadata = new Metadata();
  for (const name of Object.keys(trailers)) {
    const value = textOf(trailers, name);
    if (value === undefined || NOT_METADATA.has(name)) continue;
    if (name.endsWith(BINARY)) metadata.set(name, Buffer.from(value, "base64"));
    else metadata.set(name, value);
  }
  const sent = Number(trailers["grpc-status"]);
  const code = codes.find((each) => each === sent) ?? status.UNKNOWN;
  return { code, details: decoded(textOf(trailers, "grpc-message") ?? ""), metadata };
}

/** The status itself, and headers of HTTP, which an answer without a body has beside it. */
const NOT_METADATA: ReadonlySet<string> = new Set([
  "cache-control",
  "connection",
  "content-length",
  "content-type",
  "date",
  "grpc-message",
  "grpc-status",
  "keep-alive",
  "server",
  "transfer-encoding",
  "x-content-type-options",
]);

const codes = Object.values(status).filter((code) => typeof code === "number");

/** A message is percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
