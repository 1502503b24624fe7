import { serve } from "@hono/node-server";
import type { Hono } from "hono";
import { once } from "node:events";
import { HOST } from "./local.ts";

/** Serves the app on the port. Resolves to a function that stops the server. */
export async function listen(app: Hono, port: number): Promise<() => Promise<void>> {
  const server = serve({ fetch: app.fetch, hostname: HOST, port });
  await once(server, "listening");
  return async () => {
    const closed = once(server, "close");
    server.close();
    // Browsers keep idle connections open, and `close` would wait for them.
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  };
}
