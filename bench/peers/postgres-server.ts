/**
 * Common code of the peers that are Node, Hono and `pg` in front of Debian's PostgreSQL. They differ in the
 * statements of a begin and a commit.
 */
import { DatabaseError, Pool, type PoolClient } from "pg";
import { initPostgres, POSTGRES_USER, runPostgres } from "../../test/support/databases/postgres-program.ts";
import type { PeerStore } from "./app.ts";
import type { Claim } from "./batch.ts";
import { serveStore, untilReady } from "./node.ts";

/** More backends would only wait for each other on a few cores. */
const CONNECTIONS = 16;
const UNIQUE_VIOLATION = "23505";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS lease (lease uuid PRIMARY KEY, cell text NOT NULL, state text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz);
  CREATE TABLE IF NOT EXISTS claim (type text NOT NULL, name text NOT NULL, value text NOT NULL,
    cell text NOT NULL, subject text NOT NULL, source text NOT NULL, lease uuid,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (type, name));
  CREATE INDEX IF NOT EXISTS claim_lease ON claim (lease) WHERE lease IS NOT NULL;
`;
const LOOKUP = "SELECT value, cell, subject, source, lease FROM claim WHERE type = $1 AND name = $2";

/** The values of a batch as one array per column: `$3` to `$7` of the statement that inserts claims. */
export const BATCH = `unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
  AS batch (type, name, value, subject, source)`;

/** What differs between these peers. Each method makes one transaction. */
export interface PostgresWrites {
  /** `columns` are the values of `BATCH`. Fails with a unique violation when a name is taken. */
  begin(client: PoolClient, cell: string, lease: string, columns: readonly string[][]): Promise<void>;
  /** Resolves to false when the cell has no such granted lease. */
  commit(client: PoolClient, cell: string, lease: string): Promise<boolean>;
}

/** Starts PostgreSQL with its data in `folder`, and serves requests until a stop signal. */
export async function servePostgres(folder: string, writes: PostgresWrites): Promise<void> {
  initPostgres(folder);
  // These are Debian's settings, with fsync and synchronous_commit on. Only the listening address differs.
  const server = runPostgres(folder, { listen_addresses: "" }, "ignore");
  const pool = new Pool({ host: folder, user: POSTGRES_USER, database: "postgres", max: CONNECTIONS });
  pool.on("error", () => {});
  await untilReady(() => pool.query("SELECT 1"));
  await pool.query(SCHEMA);
  await serveStore(storeOf(pool, writes), server, "SIGINT", () => pool.end());
}

function storeOf(pool: Pool, writes: PostgresWrites): PeerStore {
  // `pool.query` would discard the connection after every refusal.
  const withClient = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  };
  return {
    async begin(cell, lease, claims) {
      try {
        await withClient((client) => writes.begin(client, cell, lease, columnsOf(claims)));
        return true;
      } catch (error) {
        if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return false;
        throw error;
      }
    },

    commit: (cell, lease) => withClient((client) => writes.commit(client, cell, lease)),

    async lookup(type, name) {
      const { rows } = await pool.query<object>({ name: "lookup", text: LOOKUP, values: [type, name] });
      return rows[0];
    },
  };
}

/** Sorted, so that two batches with the same names cannot deadlock. */
function columnsOf(claims: readonly Claim[]): string[][] {
  const sorted = claims.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return (["type", "name", "value", "subject", "source"] as const).map((column) =>
    sorted.map((claim) => claim[column]),
  );
}
