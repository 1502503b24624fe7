import * as http from "node:http";
import * as https from "node:https";
import { URL, urlToHttpOptions } from "node:url";

/** How a request gets to the coordinator: over HTTP, or in the same process. */

export interface WebRequest {
  method: "GET" | "POST";
  path: string;
  /** Names are in lower case. */
  headers: Readonly<Record<string, string>>;
  body?: Buffer<ArrayBuffer>;
  /** A client certificate in DER, verified by TLS. */
  certificate?: Buffer | undefined;
  /** Aborts when nobody waits for the answer any more. */
  signal?: AbortSignal;
}

export interface WebResponse {
  status: number;
  /** Names are in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined: it is larger than `MAX_ANSWER_BYTES`. */
  body: Buffer | undefined;
}

/** Rejects if there is no whole answer: with `NotConnected` if the request was not sent. */
export type Send = (request: WebRequest) => Promise<WebResponse>;

/** There is no connection to the coordinator, so the request had no effect. */
export class NotConnected extends Error {}

/** Clients accept messages of 4 MiB by default, and GitLab's of 10 MiB. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Answers requests in this process. */
export function requestSend(
  coordinator: string,
  answer: (request: Request, certificate: Buffer | undefined) => Promise<Response>,
): Send {
  return async ({ method, path, headers, body, certificate, signal }) => {
    const init = { method, headers, body: body ?? null, signal: signal ?? null };
    const response = await answer(new Request(coordinator + path, init), certificate);
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: await readBody(response),
    };
  };
}

async function readBody(response: Response): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export interface SendLimits {
  /** How long a connection may take, with the handshake of TLS. Default: 10,000. */
  connectMs?: number;
  /** How long no byte may arrive. Clients with a deadline stop waiting earlier. Default: 300,000. */
  silentMs?: number;
}

/**
 * Sends requests over HTTP/1.1, on connections that Node keeps. With `fetch`, about 30 % of the bridge's
 * busy time went into it.
 *
 * @param coordinator a URL without a path
 */
export function httpSend(
  coordinator: string,
  { connectMs = 10_000, silentMs = 300_000 }: SendLimits = {},
): Send {
  const { protocol, hostname, port } = urlToHttpOptions(new URL(coordinator));
  const isTls = protocol === "https:";
  const start = isTls ? https.request : http.request;
  const connected = isTls ? "secureConnect" : "connect";
  return ({ method, path, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      let isConnected = false;
      const options = { protocol, hostname, port, method, path, headers, timeout: silentMs };
      const request = start(options, (answer) => readAnswer(answer, resolve, reject));
      const cancel = (): void => void request.destroy();
      if (signal?.aborted === true) cancel();
      else signal?.addEventListener("abort", cancel, { once: true });
      request.once("socket", (socket) => {
        isConnected = !socket.connecting;
        if (isConnected) return;
        const timer = setTimeout(cancel, connectMs);
        socket.once(connected, () => {
          isConnected = true;
          clearTimeout(timer);
        });
        socket.once("close", () => clearTimeout(timer));
      });
      request.once("timeout", cancel);
      request.on("error", (cause) =>
        reject(isConnected ? cause : new NotConnected(cause.message, { cause })),
      );
      request.end(body);
    });
}

function readAnswer(
  answer: http.IncomingMessage,
  resolve: (response: WebResponse) => void,
  reject: (error: Error) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const done = (body: Buffer | undefined): void =>
    resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body });
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk);
    else {
      done(undefined);
      answer.destroy();
    }
  });
  answer.once("end", () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
  answer.on("error", reject);
}
