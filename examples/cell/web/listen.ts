import { serve } from "@hono/node-server";
import type { Hono } from "hono";
import { once } from "node:events";
import { HOST } from "./local.ts";

/** Answers the function that ends it. */
export async function listen(app: Hono, port: number): Promise<() => Promise<void>> {
  const server = serve({ fetch: app.fetch, hostname: HOST, port });
  await once(server, "listening");
  return async () => {
    const closed = once(server, "close");
    server.close();
    // Browsers keep connections open for as long as they may.
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  };
}
