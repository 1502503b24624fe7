/** Runs the checks of the router on Node, Deno or Bun. Prints what they have checked. */
import { toNodeListener } from "leasehold/router/node";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { checkRouter, type Routed, type ServedProxy, type ServeProxy } from "./router-checks.ts";

/** The servers of Bun and Deno, as far as they are used here. */
interface Runtime {
  Bun?: { serve: (options: object) => { port: number; stop: (closesConnections: boolean) => Promise<void> } };
  Deno?: {
    serve: (options: object, handler: unknown) => { addr: { port: number }; shutdown: () => Promise<void> };
  };
}

const { Bun, Deno } = globalThis as Runtime;
const hostname = "127.0.0.1";

const serveProxy: ServeProxy = async (proxy) => {
  // The handlers of both get a second argument that is no context of the proxy.
  const handler = (request: Request): Promise<Response> => proxy(request);
  const overHttp = (port: number, stop: () => Promise<void>): ServedProxy => ({
    send: (path, init) => fetch(`http://${hostname}:${port}${path}`, init),
    stop,
  });
  if (Bun !== undefined) {
    const server = Bun.serve({ hostname, port: 0, fetch: handler });
    return overHttp(server.port, () => server.stop(true));
  }
  if (Deno !== undefined) {
    const server = Deno.serve({ hostname, port: 0, onListen: () => {} }, handler);
    return overHttp(server.addr.port, () => server.shutdown());
  }
  const server = createServer(toNodeListener(proxy)).listen(0, hostname);
  await once(server, "listening");
  return overHttp((server.address() as AddressInfo).port, async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });
};

console.log(await checkRouter(JSON.parse(process.env["ROUTED"] ?? "{}") as Routed, serveProxy));
process.exit();
