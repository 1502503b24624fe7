import type { DatabaseSync } from "node:sqlite";

interface InsertedLeases {
  count: number;
  /** Their ids are this and a number, from 1 on, which is also the position of their creation. */
  prefix: string;
  decided?: 0 | 1;
  pending: 0 | 1;
  state?: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
  atMs?: number;
  epochs?: string | null;
}

/** Inserts leases of an earlier instance, older than all others. Returns their ids. */
export function insertLeases(database: DatabaseSync, leases: InsertedLeases): string[] {
  const { count, prefix, pending, atMs = 0, epochs = "{}", state = "COMMITTED" } = leases;
  const { decided = state === "GRANTED" ? 0 : 1 } = leases;
  database
    .prepare(
      `INSERT INTO lease (created_position, lease, decided, pending, position, created_at_ms, decided_at_ms,
                          state, fence, incarnation, counter, epochs, shards, payload, payload_hash, creates,
                          destroys, replaces, missing)
       SELECT n, ? || n, ?, ?, n, ?, ?, ?, 0, 1, n, ?, 1, '[]', '', 0, 0, 0, 0
         FROM (WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ?)
               SELECT n FROM count)`,
    )
    .run(prefix, decided, pending, atMs, decided === 0 ? null : atMs, state, epochs, count);
  return Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`);
}

/** SQL for whether a ledger does not know that a lease is finished. */
export const UNFINISHED = `(epochs IS NOT NULL AND (pending = 1 OR created_position >
  coalesce((SELECT value ->> 'through' FROM meta WHERE name = 'applied'), 0)))`;

/** The leases that a restart would find unfinished, in the order of their creation: decided or not. */
export function unfinished(database: DatabaseSync, decided: 0 | 1): string[] {
  const rows = database
    .prepare(`SELECT lease FROM lease WHERE decided = ? AND ${UNFINISHED} ORDER BY created_position`)
    .all(decided);
  return rows.map(({ lease }) => String(lease));
}
