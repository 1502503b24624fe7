import type { DatabaseSync } from "node:sqlite";
import type { Cluster } from "./cluster.ts";

/** Returns a function that brings a part back to its present state, and starts a new instance of it. */
function save(database: DatabaseSync, restart: () => void): () => void {
  const tables = database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .map(({ name }) => String(name));
  const kept = tables.map((table) => [table, database.prepare(`SELECT * FROM ${table}`).all()] as const);
  return () => {
    for (const [table, rows] of kept) {
      database.exec(`DELETE FROM ${table}`);
      for (const row of rows) {
        const columns = Object.keys(row);
        const places = columns.map(() => "?").join();
        database
          .prepare(`INSERT INTO ${table} (${columns.join()}) VALUES (${places})`)
          .run(...Object.values(row));
      }
    }
    restart();
  };
}

export const saveShard = (c: Cluster) => save(c.shard(0).database, () => void c.shard(0).restart());
export const saveLedger = (c: Cluster) => save(c.ledger("1").database, () => void c.ledger("1").restart());
