/**
 * The peer `postgres`: Node, Hono and `pg` in front of Debian's PostgreSQL. A begin is one transaction, and a
 * commit another.
 */
import { DatabaseError, Pool } from "pg";
import { initPostgres, POSTGRES_USER, runPostgres } from "../../test/support/databases/postgres-program.ts";
import type { PeerStore } from "./app.ts";
import { serveStore, untilReady } from "./node.ts";
import { folderOf } from "./serve.ts";

/** More backends would only wait for each other on a few cores. */
const CONNECTIONS = 16;
const UNIQUE_VIOLATION = "23505";

const folder = folderOf(process.argv);
initPostgres(folder);
// These are Debian's settings, with fsync and synchronous_commit on. Only the listening address differs.
const server = runPostgres(folder, { listen_addresses: "" }, "ignore");
const pool = new Pool({ host: folder, user: POSTGRES_USER, database: "postgres", max: CONNECTIONS });
pool.on("error", () => {});

await untilReady(() => pool.query("SELECT 1"));
await pool.query(`
  CREATE TABLE IF NOT EXISTS lease (lease uuid PRIMARY KEY, cell text NOT NULL, state text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz);
  CREATE TABLE IF NOT EXISTS claim (type text NOT NULL, name text NOT NULL, value text NOT NULL,
    cell text NOT NULL, subject text NOT NULL, source text NOT NULL, lease uuid,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (type, name));
  CREATE INDEX IF NOT EXISTS claim_lease ON claim (lease) WHERE lease IS NOT NULL;
`);

// Each is a single statement, so it is one transaction and one round trip to the database.
const BEGIN = `WITH granted AS (INSERT INTO lease (lease, cell, state) VALUES ($1, $2, 'GRANTED'))
  INSERT INTO claim (type, name, value, cell, subject, source, lease)
  SELECT type, name, value, $2, subject, source, $1
  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    AS batch (type, name, value, subject, source)`;
const COMMIT = `WITH decided AS (UPDATE lease SET state = 'COMMITTED', decided_at = now()
    WHERE lease = $1 AND cell = $2 AND state = 'GRANTED' RETURNING lease)
  UPDATE claim SET lease = NULL FROM decided WHERE claim.lease = decided.lease`;
const LOOKUP = "SELECT value, cell, subject, source, lease FROM claim WHERE type = $1 AND name = $2";

const store: PeerStore = {
  async begin(cell, lease, claims) {
    // Sorted, so that two batches with the same names cannot deadlock.
    const sorted = claims.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const columns = (["type", "name", "value", "subject", "source"] as const).map((column) =>
      sorted.map((claim) => claim[column]),
    );
    // `pool.query` would discard the connection after every refusal.
    const client = await pool.connect();
    try {
      await client.query({ name: "begin", text: BEGIN, values: [lease, cell, ...columns] });
      return true;
    } catch (error) {
      if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return false;
      throw error;
    } finally {
      client.release();
    }
  },

  async commit(cell, lease) {
    const { rowCount } = await pool.query({ name: "commit", text: COMMIT, values: [lease, cell] });
    return rowCount !== 0;
  },

  async lookup(type, name) {
    const { rows } = await pool.query<object>({ name: "lookup", text: LOOKUP, values: [type, name] });
    return rows[0];
  },
};

await serveStore(store, server, "SIGINT", () => pool.end());
