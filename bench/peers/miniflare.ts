import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { join } from "node:path";
import { bundle } from "../../scripts/bundle.ts";

/**
 * Starts a Worker of one file on Miniflare with its state on disk, as `scripts/coordinator.ts` runs
 * Leasehold.
 */
export async function startWorker(
  entryPoint: string,
  folder: string,
  options: Record<string, unknown>,
): Promise<Miniflare> {
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: 0,
      name: "peer",
      modules: true,
      script: await bundle(entryPoint),
      compatibilityDate: "2026-10-01",
      // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
      cf: false,
      resourcePersistencePath: join(folder, "storage"),
      ...options,
    }),
  );
  await miniflare.ready;
  return miniflare;
}
