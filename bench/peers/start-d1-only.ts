import { join } from "node:path";
import { startWorker } from "./miniflare.ts";

const SCHEMA = [
  `CREATE TABLE lease (lease TEXT PRIMARY KEY, cell TEXT NOT NULL, state TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL, decided_at_ms INTEGER)`,
  `CREATE TABLE claim (type TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, cell TEXT NOT NULL,
    subject TEXT NOT NULL, source TEXT NOT NULL, lease TEXT, created_at_ms INTEGER NOT NULL)`,
  "CREATE UNIQUE INDEX claim_name ON claim (type, name)",
  "CREATE INDEX claim_lease ON claim (lease) WHERE lease IS NOT NULL",
];

/** Starts a Worker with a D1 database of its own, which has the tables. */
export async function startD1Only(
  folder: string,
  entryPoint = join(import.meta.dirname, "d1-only-worker.ts"),
): ReturnType<typeof startWorker> {
  const started = await startWorker(entryPoint, folder, { d1Databases: { DB: "d1-only" } });
  const db = await started.miniflare.getD1Database("DB");
  await db.batch(SCHEMA.map((statement) => db.prepare(statement)));
  return started;
}
