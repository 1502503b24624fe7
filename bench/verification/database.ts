import { chmodSync, mkdirSync } from "node:fs";
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { Pool, type PoolConfig } from "pg";
import { drizzle } from "drizzle-orm/node-postgres";
import { postgres } from "../../src/users/cell/postgres/index.ts";
import { initPostgres, POSTGRES_USER, runPostgres } from "../../test/support/databases/postgres-program.ts";
import { untilReady } from "../peers/node.ts";
import { MAKE_ROUTES } from "./routes.ts";

/** The number of rows that one statement inserts. */
const ROWS_AT_ONCE = 20_000;

export const poolOf = (folder: string): PoolConfig => ({
  host: folder,
  user: POSTGRES_USER,
  database: "postgres",
  max: 4,
});

/** Debian's PostgreSQL with the claimable table and default settings: fsync and synchronous_commit are on. */
export class RoutesDatabase {
  readonly #server: ChildProcess;
  readonly #pool: Pool;

  private constructor(server: ChildProcess, pool: Pool) {
    this.#server = server;
    this.#pool = pool;
  }

  static async start(folder: string): Promise<RoutesDatabase> {
    mkdirSync(folder);
    // PostgreSQL runs as a user of its own, who must be able to write here.
    chmodSync(folder, 0o777);
    initPostgres(folder);
    const server = runPostgres(folder, { listen_addresses: "" }, "ignore");
    const pool = new Pool(poolOf(folder));
    pool.on("error", () => {});
    const database = new RoutesDatabase(server, pool);
    try {
      await untilReady(() => pool.query("SELECT 1"));
      await pool.query(MAKE_ROUTES);
      await postgres(drizzle(pool)).install();
    } catch (error) {
      await database.stop();
      throw error;
    }
    return database;
  }

  /** Inserts a row for each name, with ids from 1, changed a day ago. Returns the number of rows. */
  async load(names: Iterable<string>): Promise<number> {
    let loaded = 0;
    for (const paths of chunksOf(names)) {
      const statement = `INSERT INTO routes SELECT $1::bigint + n, path, now() - interval '1 day'
        FROM unnest($2::text[]) WITH ORDINALITY AS named (path, n)`;
      await this.#pool.query(statement, [loaded, paths]);
      loaded += paths.length;
    }
    await this.query("VACUUM ANALYZE routes");
    return loaded;
  }

  /** Returns the number of rows that the statement affected. */
  async query(statement: string): Promise<number> {
    return (await this.#pool.query(statement)).rowCount ?? 0;
  }

  async stop(): Promise<void> {
    await this.#pool.end();
    if (this.#server.exitCode !== null || this.#server.signalCode !== null) return;
    const ended = once(this.#server, "exit");
    this.#server.kill("SIGINT");
    await ended;
  }
}

function* chunksOf(names: Iterable<string>): Generator<string[]> {
  let chunk: string[] = [];
  for (const name of names) {
    chunk.push(name);
    if (chunk.length < ROWS_AT_ONCE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
