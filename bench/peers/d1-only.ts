/** The peer `d1-only`: the Worker in `d1-only-worker.ts` under Miniflare. */
import { CELLS, PEER_ROUTER, peerKeys } from "./batch.ts";
import { folderOf, serve } from "./serve.ts";
import { startD1Only } from "./start-d1-only.ts";

const { miniflare, url } = await startD1Only(folderOf(process.argv));
serve({ url, keys: peerKeys(CELLS), router: PEER_ROUTER }, () => miniflare.dispose());
