/** `postgres`: Node, Hono and `pg` before Debian's PostgreSQL; one transaction for a begin, one for a commit. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseError, Pool } from "pg";
import type { PeerStore } from "./app.ts";
import { serveStore, untilReady } from "./node.ts";
import { folderOf } from "./serve.ts";

/** More backends than this only wait for each other on a few cores. */
const CONNECTIONS = 16;
const UNIQUE_VIOLATION = "23505";

const folder = folderOf(process.argv);
const data = join(folder, "data");
const socket = join(folder, "socket");
const isRoot = process.getuid?.() === 0;
/** PostgreSQL refuses to run as root. */
const asUser = (command: string, args: string[]): [string, string[]] =>
  isRoot ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", command, ...args]] : [command, args];

function binary(name: string): string {
  const versions = "/usr/lib/postgresql";
  const newest = existsSync(versions) ? readdirSync(versions).toSorted((a, b) => Number(b) - Number(a))[0] : undefined;
  return newest === undefined ? name : join(versions, newest, "bin", name);
}

mkdirSync(socket, { recursive: true });
if (isRoot) {
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" })));
  for (const path of [folder, socket]) chownSync(path, uid ?? 0, gid ?? 0);
}
if (!existsSync(data))
  execFileSync(...asUser(binary("initdb"), ["-D", data, "-A", "trust", "-E", "UTF8", "--no-locale", "-U", "postgres"]), {
    stdio: "ignore",
    cwd: folder,
  });
// As Debian ships it, fsync and synchronous_commit on; only where it listens is ours.
const server = spawn(...asUser(binary("postgres"), ["-D", data, "-k", socket, "-c", "listen_addresses="]), { stdio: "ignore", cwd: folder });
const pool = new Pool({ host: socket, user: "postgres", database: "postgres", max: CONNECTIONS });
pool.on("error", () => {});

await untilReady(() => pool.query("SELECT 1"));
await pool.query(`
  CREATE TABLE IF NOT EXISTS lease (lease uuid PRIMARY KEY, cell text NOT NULL, state text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz);
  CREATE TABLE IF NOT EXISTS claim (type text NOT NULL, name text NOT NULL, value text NOT NULL, cell text NOT NULL, subject text NOT NULL, source text NOT NULL,
    lease uuid, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (type, name));
  CREATE INDEX IF NOT EXISTS claim_lease ON claim (lease) WHERE lease IS NOT NULL;
`);

// One statement is one transaction, and one way to the database and back.
const BEGIN = `WITH granted AS (INSERT INTO lease (lease, cell, state) VALUES ($1, $2, 'GRANTED'))
  INSERT INTO claim (type, name, value, cell, subject, source, lease)
  SELECT type, name, value, $2, subject, source, $1 FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS batch (type, name, value, subject, source)`;
const COMMIT = `WITH decided AS (UPDATE lease SET state = 'COMMITTED', decided_at = now() WHERE lease = $1 AND cell = $2 AND state = 'GRANTED' RETURNING lease)
  UPDATE claim SET lease = NULL FROM decided WHERE claim.lease = decided.lease`;
const LOOKUP = "SELECT value, cell, subject, source, lease FROM claim WHERE type = $1 AND name = $2";

const store: PeerStore = {
  async begin(cell, lease, claims) {
    // In one order, so that two batches over the same names do not wait for each other.
    const sorted = claims.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const columns = (["type", "name", "value", "subject", "source"] as const).map((column) => sorted.map((claim) => claim[column]));
    // Not by `pool.query`, which gives the connection up with every refusal.
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
