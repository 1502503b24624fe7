/**
 * The peer `postgres`: a begin is a single statement, and a commit another. So each is one transaction and
 * one round trip to the database.
 */
import { BATCH, servePostgres } from "./postgres-server.ts";
import { folderOf } from "./serve.ts";

const BEGIN = `WITH granted AS (INSERT INTO lease (lease, cell, state) VALUES ($1, $2, 'GRANTED'))
  INSERT INTO claim (type, name, value, cell, subject, source, lease)
  SELECT type, name, value, $2, subject, source, $1 FROM ${BATCH}`;
const COMMIT = `WITH decided AS (UPDATE lease SET state = 'COMMITTED', decided_at = now()
    WHERE lease = $1 AND cell = $2 AND state = 'GRANTED' RETURNING lease)
  UPDATE claim SET lease = NULL FROM decided WHERE claim.lease = decided.lease`;

await servePostgres(folderOf(process.argv), {
  async begin(client, cell, lease, columns) {
    await client.query({ name: "begin", text: BEGIN, values: [lease, cell, ...columns] });
  },

  async commit(client, cell, lease) {
    const { rowCount } = await client.query({ name: "commit", text: COMMIT, values: [lease, cell] });
    return rowCount !== 0;
  },
});
