import type { DatabaseSync } from "node:sqlite";
import type { Outcome } from "../../src/coordinator/kernel/messages.ts";
import { no } from "./calls.ts";
import type { Cluster } from "./cluster.ts";
import { beginRequest, decideRequest, type OpSpec } from "./ops.ts";

/** The refusal of a part that knows that it has gone back in time (H4). */
export const LOST = no("UNAVAILABLE", { reason: "HISTORY_LOST" });

export const begin = (c: Cluster, cell: string, lease: string, names: (string | OpSpec)[], more = {}) =>
  c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, names, more)));

export const decide = (c: Cluster, cell: string, lease: string, outcome: Outcome) =>
  c.clock.runUntil(c.ledger(cell).object.decide(decideRequest(c.envelope, lease, outcome)));

/** Makes a cell the owner of a name. */
export async function own(c: Cluster, cell: string, name: string | OpSpec): Promise<void> {
  const lease = c.uuid();
  await begin(c, cell, lease, [name]);
  await decide(c, cell, lease, "COMMITTED");
}

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
export const saveDirectory = (c: Cluster) => save(c.directory.database, () => void c.directory.restart());
export const saveLedger = (c: Cluster) => save(c.ledger("1").database, () => void c.ledger("1").restart());
