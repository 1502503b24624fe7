import { drizzle as drizzleMysql2 } from "drizzle-orm/mysql2";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePglite } from "drizzle-orm/pglite";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPool, type RowDataPacket } from "mysql2/promise";
import { Pool } from "pg";
import postgresJs from "postgres";
import { startCoordinator } from "../../../../src/hosts/workerd/coordinator.ts";
import { startTestCoordinator } from "../../../../src/users/testing/index.ts";
import { startPglite } from "../../../support/databases/pglite.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";
import type { Orm } from "./dialect.ts";
import { drizzleTarget, type TestedCoordinator, type TestedDatabase } from "./drizzle.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import type { Values } from "../../../../src/users/cell/conformance/target.ts";

/** Starts the deployed Worker with workerd, Durable Objects and D1. */
export async function realCoordinator(): Promise<TestedCoordinator> {
  const stateFolder = await mkdtemp(join(tmpdir(), "leasehold-scenarios-"));
  const coordinator = await startCoordinator({ port: 0, stateFolder });
  const { url, keys } = coordinator;
  return {
    url,
    fetch: (to, init) => fetch(to, init),
    keys: { cell: (id) => keys.cells[id] ?? "", router: keys.router },
    stop: async () => {
      await coordinator.stop();
      await rm(stateFolder, { recursive: true, force: true });
    },
  };
}

/** The test coordinator of the SDK, whose clock can be advanced. */
export interface AdvancedCoordinator extends TestedCoordinator {
  advance(ms: number): Promise<void>;
}

/** Starts the test coordinator of the SDK. */
export async function testCoordinator(): Promise<AdvancedCoordinator> {
  const coordinator = await startTestCoordinator();
  const { url, keys } = coordinator;
  return {
    url,
    fetch: (to, init) => coordinator.fetch(to, init),
    keys,
    advance: (ms) => coordinator.advance(ms),
    stop: () => coordinator.close(),
  };
}

export async function pglite(): Promise<TestedDatabase> {
  const database = await startPglite();
  return {
    orm: drizzlePglite(database),
    isConcurrent: false,
    query: async (statement) => (await database.query<Values>(statement)).rows,
    stop: () => database.close(),
  };
}

/** The database with which the scenarios run. */
export const pgliteTarget = drizzleTarget(
  { name: "drizzle with PGlite", isConcurrent: false },
  postgresDialect,
  pglite,
);

export function drizzleOnNodePostgres(url: string): TestedDatabase {
  const pool = new Pool({ connectionString: url, max: 10 });
  const query = async (statement: string) => (await pool.query<Values>(statement)).rows;
  return { orm: drizzleNodePostgres(pool), isConcurrent: true, query, stop: () => pool.end() };
}

export function drizzleOnPostgresJs(url: string): TestedDatabase {
  const client = postgresJs(url, { max: 10, onnotice: () => {} });
  const query = async (statement: string): Promise<Values[]> => client.unsafe(statement);
  return { orm: drizzlePostgresJs(client), isConcurrent: true, query, stop: () => client.end() };
}

export function drizzleOnMysql2(url: string): TestedDatabase {
  const pool = createPool({ uri: url, connectionLimit: 10 });
  const query = async (statement: string) => (await pool.query<RowDataPacket[]>(statement))[0];
  const orm = drizzleMysql2(pool) as unknown as Orm;
  return { orm, isConcurrent: true, query, stop: () => pool.end() };
}

/** Databases on one server, which is stopped with the last of them, and started again for the next. */
export class PostgresServer {
  #server: Promise<DatabaseServer> | undefined;
  #users = 0;

  nodePostgres = (): Promise<TestedDatabase> => this.#database(drizzleOnNodePostgres);

  postgresJs = (): Promise<TestedDatabase> => this.#database(drizzleOnPostgresJs);

  async #database(connect: (url: string) => TestedDatabase): Promise<TestedDatabase> {
    this.#server ??= startPostgres();
    this.#users += 1;
    const server = await this.#server;
    const connected = connect(server.url(await server.createDatabase()));
    const stop = async (): Promise<void> => {
      await connected.stop();
      this.#users -= 1;
      if (this.#users > 0) return;
      this.#server = undefined;
      await server.stop();
    };
    return { ...connected, stop };
  }
}
