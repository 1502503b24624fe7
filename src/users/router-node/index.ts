/** Serves a router with the HTTP servers of Node. */
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { RequestListener } from "node:http";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { Proxy } from "../router/index.ts";

/**
 * Makes a listener for a server of `node:http` or `node:https` that answers every request with a proxy.
 * Bodies are streamed in both directions, a client that leaves ends its request to the cell, and the address
 * of the client gets into `X-Forwarded-For`. A server of Node passes no WebSockets on.
 *
 * It logs nothing. The cause of a failure with a status of 500 or more goes only to the proxy's hook
 * `onProxyFailure`.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import type { Proxy } from "leasehold/router";
 * import { toNodeListener } from "leasehold/router/node";
 *
 * declare const proxy: Proxy;
 *
 * createServer(toNodeListener(proxy)).listen(8080);
 * ```
 */
export function toNodeListener(proxy: Proxy): RequestListener {
  const listener = getRequestListener(
    async (request, { incoming, outgoing }) => {
      await send(await proxy(request, { clientAddress: incoming.socket.remoteAddress }), outgoing);
      return RESPONSE_ALREADY_SENT;
    },
    // The classes of the whole process must stay as they are.
    { overrideGlobalObjects: false },
  );
  return (incoming, outgoing) => void listener(incoming, outgoing);
}

type Outgoing = Parameters<Parameters<typeof getRequestListener>[0]>[1]["outgoing"];

/**
 * Sends an answer as it is. The listener itself would add a `Content-Type`, with which browsers don't look at
 * the content, and would log whoever breaks off.
 */
async function send({ status, headers, body }: Response, outgoing: Outgoing): Promise<void> {
  outgoing.statusCode = status;
  for (const [name, value] of headers) outgoing.appendHeader(name, value);
  if (body === null) {
    outgoing.end();
    return;
  }
  if ("flushHeaders" in outgoing) outgoing.flushHeaders();
  // It closes the connection if the cell breaks off, and cancels the body if the client does.
  await pipeline(Readable.fromWeb(body as unknown as ReadableStream), outgoing as Writable).catch(
    () => undefined,
  );
}
