/** Turns a native call into one of gRPC-Web for the coordinator. The message stays as its client made it. */
import { status, type Metadata } from "@grpc/grpc-js";
import { failed, readWebAnswer, type WebAnswer } from "./web-answer.ts";

/** Sends a request to the coordinator, for a client that has proved a certificate or that has none. */
export type Send = (request: Request, certificate: Certificate | undefined) => Promise<Response>;

/** A client certificate in DER, verified by TLS. */
type Certificate = Buffer;

export interface NativeCall {
  /** `/<package>.<Service>/<Method>` */
  path: string;
  message: Buffer;
  metadata: Metadata;
  /** When the client stops waiting, in milliseconds of `Date.now()`. Infinity: never. */
  deadlineMs: number;
  certificate: Certificate | undefined;
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
export async function forward(base: string, call: NativeCall, send: Send): Promise<WebAnswer> {
  try {
    return await readWebAnswer(await send(requestOf(base, call), call.certificate));
  } catch (error) {
    if (call.signal.aborted) return failed(status.CANCELLED, "the client has cancelled the call");
    return failed(status.UNAVAILABLE, unreachable(error));
  }
}

/** Nothing was sent if the connection could not be made. Otherwise the call may have had its effect. */
function unreachable(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const { code } = cause as NodeJS.ErrnoException;
  return code !== undefined && NOT_CONNECTED.has(code)
    ? "the coordinator cannot be reached; nothing was done"
    : "the coordinator did not answer; whether the call had an effect is unknown";
}

const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function requestOf(base: string, { path, message, metadata, deadlineMs, signal }: NativeCall): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(metadata.getMap()))
    if (typeof value === "string" && isForwarded(name)) headers.set(name, value);
  headers.set("content-type", "application/grpc-web+proto");
  headers.set("x-grpc-web", "1");
  if (Number.isFinite(deadlineMs)) {
    const leftMs = Math.ceil(Math.min(MAX_TIMEOUT_MS, Math.max(0, deadlineMs - Date.now())));
    headers.set("grpc-timeout", `${leftMs}m`);
  }
  const body = Buffer.alloc(FRAME_BYTES + message.length);
  body.writeUInt32BE(message.length, 1);
  message.copy(body, FRAME_BYTES);
  return new Request(`${base}/grpc${path}`, { method: "POST", headers, body, signal, redirect: "manual" });
}
