import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { join } from "node:path";
import { bundle } from "../../../scripts/bundle.ts";
import { withoutSignalHandlers, workerdWrapper } from "../../../src/hosts/workerd/workerd.ts";
import type { Routed } from "./consumer/router-checks.ts";

/** Runs the checks of the router in a Worker that has bundled the packed SDK. Returns what they checked. */
export async function checkWorkerd(project: string, routed: Routed): Promise<string> {
  const modules = await bundle(join(project, "router-worker.mjs"));
  process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
  const miniflare = withoutSignalHandlers(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          host: "127.0.0.1",
          port: 0,
          // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
          cf: false,
          modules,
          compatibilityDate: "2026-10-01",
          bindings: { ROUTED: { ...routed } },
        }),
      ),
  );
  try {
    const answer = await miniflare.dispatchFetch("http://127.0.0.1/");
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text;
  } finally {
    await miniflare.dispose();
  }
}
