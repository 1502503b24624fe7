import * as http from "node:http";
import * as https from "node:https";
import { URL, urlToHttpOptions } from "node:url";
import { MAX_ANSWER_BYTES, NotConnected, type Send, type WebResponse } from "./send.ts";

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
