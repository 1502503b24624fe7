/** `postgres`: Node, Hono and `pg` before Debian's PostgreSQL; one transaction for a begin, one for a commit. */
import { serve as listen } from "@hono/node-server";
import { Hono } from "hono";
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { DatabaseError, Pool } from "pg";
import { CELLS, claimsOf, PEER_ROUTER, peerKey, peerKeys } from "./batch.ts";
import { folderOf, serve } from "./serve.ts";

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

for (let tries = 0; ; tries += 1) {
  try {
    await pool.query("SELECT 1");
    break;
  } catch (error) {
    if (tries === 100) throw error;
    await setTimeout(100);
  }
}
await pool.query(`
  CREATE TABLE IF NOT EXISTS lease (lease uuid PRIMARY KEY, cell text NOT NULL, state text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz);
  CREATE TABLE IF NOT EXISTS claim (type text NOT NULL, name text NOT NULL, value text NOT NULL, cell text NOT NULL, subject text NOT NULL, source text NOT NULL,
    lease uuid, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (type, name));
  CREATE INDEX IF NOT EXISTS claim_lease ON claim (lease) WHERE lease IS NOT NULL;
`);

const app = new Hono();

// One statement is one transaction, and one way to the database and back.
app.put("/v1/cells/:cell/leases/:lease", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const claims = claimsOf(await c.req.json());
  if (claims === undefined) return c.json({ code: "INVALID_ARGUMENT" }, 400);
  // In one order, so that two batches over the same names do not wait for each other.
  claims.sort((a, b) => (a.name < b.name ? -1 : 1));
  try {
    await pool.query({
      name: "begin",
      text: `WITH granted AS (INSERT INTO lease (lease, cell, state) VALUES ($1, $2, 'GRANTED'))
        INSERT INTO claim (type, name, value, cell, subject, source, lease)
        SELECT type, name, value, $2, subject, source, $1 FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS batch (type, name, value, subject, source)`,
      values: [
        lease,
        cell,
        claims.map(({ type }) => type),
        claims.map(({ name }) => name),
        claims.map(({ value }) => value),
        claims.map(({ subject }) => subject),
        claims.map(({ source }) => source),
      ],
    });
  } catch (error) {
    if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return c.json({ code: "ALREADY_EXISTS" }, 409);
    throw error;
  }
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "GRANTED" } }, 201);
});

app.post("/v1/cells/:cell/leases/:lease/commit", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const { rowCount } = await pool.query({
    name: "commit",
    text: `WITH decided AS (UPDATE lease SET state = 'COMMITTED', decided_at = now() WHERE lease = $1 AND cell = $2 AND state = 'GRANTED' RETURNING lease)
      UPDATE claim SET lease = NULL FROM decided WHERE claim.lease = decided.lease`,
    values: [lease, cell],
  });
  if (rowCount === 0) return c.json({ code: "NOT_FOUND" }, 404);
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "COMMITTED" } });
});

app.get("/v1/records/:type/:name{.+}", async (c) => {
  if (c.req.header("authorization") !== `Bearer ${PEER_ROUTER}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const { type, name } = c.req.param();
  const text = "SELECT value, cell, subject, source, lease FROM claim WHERE type = $1 AND name = $2";
  const { rows } = await pool.query<object>({ name: "lookup", text, values: [type, name.toLowerCase()] });
  const [record] = rows;
  return record === undefined ? c.json({ code: "NOT_FOUND" }, 404) : c.json({ record });
});

const http = listen({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
await new Promise((ready) => http.once("listening", ready));
const { port } = http.address() as AddressInfo;
serve({ url: `http://127.0.0.1:${port}`, keys: peerKeys(CELLS), router: PEER_ROUTER }, async () => {
  await new Promise((closed) => http.close(closed));
  await pool.end();
  const ended = new Promise((exit) => server.once("exit", exit));
  server.kill("SIGINT");
  await ended;
});
