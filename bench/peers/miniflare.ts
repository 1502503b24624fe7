import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { join } from "node:path";
import { bundle } from "../../scripts/bundle.ts";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { publicSocketAt } from "../../src/hosts/workerd/public-socket.ts";

const HOST = "127.0.0.1";

/**
 * Starts a Worker of one file on Miniflare with its state on disk, as `src/hosts/workerd/coordinator.ts` runs
 * Leasehold. Its URL leads directly to the Worker too, and not through Miniflare's entry Worker.
 */
export async function startWorker(
  entryPoint: string,
  folder: string,
  options: Record<string, unknown>,
): Promise<{ miniflare: Miniflare; url: string }> {
  const address = `${HOST}:${await freePort()}`;
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      // Only this process uses Miniflare's own port.
      host: HOST,
      port: 0,
      ...publicSocketAt(address),
      name: "peer",
      modules: await bundle(entryPoint),
      compatibilityDate: "2026-10-01",
      // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
      cf: false,
      resourcePersistencePath: join(folder, "storage"),
      ...options,
    }),
  );
  await miniflare.ready;
  return { miniflare, url: `http://${address}` };
}
