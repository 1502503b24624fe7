/**
 * The peer `postgres-transactions`: a begin and a commit are one transaction each, of several statements with
 * one round trip each, as most teams would write them first.
 */
import type { PoolClient } from "pg";
import { BATCH, servePostgres } from "./postgres-server.ts";
import { folderOf } from "./serve.ts";

const INSERT_LEASE = "INSERT INTO lease (lease, cell, state) VALUES ($1, $2, 'GRANTED')";
const INSERT_CLAIMS = `INSERT INTO claim (type, name, value, cell, subject, source, lease)
  SELECT type, name, value, $2, subject, source, $1::uuid FROM ${BATCH}`;
const DECIDE = `UPDATE lease SET state = 'COMMITTED', decided_at = now()
  WHERE lease = $1 AND cell = $2 AND state = 'GRANTED'`;
const RELEASE = "UPDATE claim SET lease = NULL WHERE lease = $1";

async function inTransaction<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  await client.query("BEGIN");
  try {
    const value = await work();
    await client.query("COMMIT");
    return value;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

await servePostgres(folderOf(process.argv), {
  begin: (client, cell, lease, columns) =>
    inTransaction(client, async () => {
      await client.query({ name: "insert-lease", text: INSERT_LEASE, values: [lease, cell] });
      await client.query({ name: "insert-claims", text: INSERT_CLAIMS, values: [lease, cell, ...columns] });
    }),

  commit: (client, cell, lease) =>
    inTransaction(client, async () => {
      const { rowCount } = await client.query({ name: "decide", text: DECIDE, values: [lease, cell] });
      if (rowCount === 0) return false;
      await client.query({ name: "release", text: RELEASE, values: [lease] });
      return true;
    }),
});
