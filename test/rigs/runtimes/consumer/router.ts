/** Runs the checks of the router on Node, Deno or Bun. Prints what they have checked. */
import { checkRouter, type Routed, type ServeProxy } from "./router-checks.ts";

/** The servers of Bun and Deno, as far as they are used here. */
interface Runtime {
  Bun?: { serve: (options: object) => { port: number; stop: (closesConnections: boolean) => Promise<void> } };
  Deno?: {
    serve: (options: object, handler: unknown) => { addr: { port: number }; shutdown: () => Promise<void> };
  };
}

const { Bun, Deno } = globalThis as Runtime;
const hostname = "127.0.0.1";

const serveProxy: ServeProxy = (proxy) => {
  // The handlers of both get a second argument that is no context of the proxy.
  const handler = (request: Request): Promise<Response> => proxy(request);
  const overHttp = (port: number, stop: () => Promise<void>): ReturnType<ServeProxy> => ({
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
  return {
    send: (path, init) => proxy(new Request(`http://www.example.com${path}`, init)),
    stop: () => Promise.resolve(),
  };
};

console.log(await checkRouter(JSON.parse(process.env["ROUTED"] ?? "{}") as Routed, serveProxy));
process.exit();
