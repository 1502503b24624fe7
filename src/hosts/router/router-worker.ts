/** Runs the Worker of `router/` on this machine, in Miniflare's workerd. */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { bundle } from "../../../scripts/bundle.ts";
import { publicSocketAt } from "../workerd/public-socket.ts";
import { withoutSignalHandlers, workerdWrapper } from "../workerd/workerd.ts";

const HOST = "127.0.0.1";

export interface RouterWorker {
  url: string;
  stop(): Promise<void>;
}

export interface RouterWorkerOptions {
  port: number;
  /** Variables and secrets as in `router/wrangler.toml`, already checked. */
  variables: Readonly<Record<string, string>>;
  /** Receives the lines of the Worker's log. */
  log: (line: string) => void;
}

/** Starts the router. Throws an `Error` with a one-sentence message if it cannot. */
export async function startRouterWorker(options: RouterWorkerOptions): Promise<RouterWorker> {
  const { port, variables, log } = options;
  await requireFree(port);
  process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
  const address = `${HOST}:${port}`;
  const modules = await bundle(join(import.meta.dirname, "../../../router/index.ts"));
  const miniflare = withoutSignalHandlers(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          // Only this process uses Miniflare's own port.
          host: HOST,
          port: 0,
          ...publicSocketAt(address),
          handleStructuredLogs: ({ message }) => log(message),
          // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
          cf: false,
          name: "leasehold-router",
          modules,
          // Both must be equal to router/wrangler.toml; a test compares them.
          compatibilityDate: "2026-10-01",
          compatibilityFlags: ["enable_request_signal"],
          bindings: { ...variables },
        }),
      ),
  );
  await miniflare.ready;
  return { url: `http://${address}`, stop: () => miniflare.dispose() };
}

async function requireFree(port: number): Promise<void> {
  const server = createServer().listen(port, HOST);
  try {
    await once(server, "listening");
  } catch {
    throw new Error(`port ${port} is in use; set --port to another port`);
  }
  server.close();
  await once(server, "close");
}
