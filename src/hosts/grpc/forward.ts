/** Turns a native call into one of gRPC-Web for the coordinator. The message stays as its client made it. */
import { status, type Metadata } from "@grpc/grpc-js";
import { NotConnected, type Send, type WebRequest } from "./send.ts";
import { failed, readWebAnswer, type WebAnswer } from "./web-answer.ts";

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
