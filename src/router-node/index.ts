/** Serves a router with the HTTP servers of Node. */
import { getRequestListener } from "@hono/node-server";
import type { RequestListener } from "node:http";
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
    (request, { incoming }) => proxy(request, { clientAddress: incoming.socket.remoteAddress }),
    // The classes of the whole process must stay as they are.
    { overrideGlobalObjects: false },
  );
  return (incoming, outgoing) => void listener(incoming, outgoing);
}
