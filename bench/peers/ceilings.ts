/**
 * Serves the ceilings of the runtime. The first path segment, `/answer`, `/object` or `/write`, selects one.
 */
import { join } from "node:path";
import { CELLS, PEER_ROUTER, peerKeys } from "./batch.ts";
import { startWorker } from "./miniflare.ts";
import { folderOf, serve } from "./serve.ts";

const worker = join(import.meta.dirname, "ceilings-worker.ts");
const { miniflare, url } = await startWorker(worker, folderOf(process.argv), {
  bindings: { OBJECTS: process.env["BENCH_SHARDS"] ?? "1" },
  durableObjects: { OBJECT: { className: "Ceiling", useSQLite: true } },
});
serve({ url, keys: peerKeys(CELLS), router: PEER_ROUTER }, () => miniflare.dispose());
