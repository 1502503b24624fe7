/** The peer `d1-only`: the Worker in `d1-only-worker.ts` under Miniflare. */
import { join } from "node:path";
import { CELLS, PEER_ROUTER, peerKeys } from "./batch.ts";
import { startWorker } from "./miniflare.ts";
import { folderOf, serve } from "./serve.ts";

const SCHEMA = [
  `CREATE TABLE lease (lease TEXT PRIMARY KEY, cell TEXT NOT NULL, state TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL, decided_at_ms INTEGER)`,
  `CREATE TABLE claim (type TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, cell TEXT NOT NULL,
    subject TEXT NOT NULL, source TEXT NOT NULL, lease TEXT, created_at_ms INTEGER NOT NULL)`,
  "CREATE UNIQUE INDEX claim_name ON claim (type, name)",
  "CREATE INDEX claim_lease ON claim (lease) WHERE lease IS NOT NULL",
];

const worker = join(import.meta.dirname, "d1-only-worker.ts");
const { miniflare, url } = await startWorker(worker, folderOf(process.argv), {
  d1Databases: { DB: "d1-only" },
});
const db = await miniflare.getD1Database("DB");
await db.batch(SCHEMA.map((statement) => db.prepare(statement)));
serve({ url, keys: peerKeys(CELLS), router: PEER_ROUTER }, () => miniflare.dispose());
