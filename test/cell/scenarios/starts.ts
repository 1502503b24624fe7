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
import { startCoordinator } from "../../../scripts/coordinator.ts";
import { startTestCoordinator } from "../../../src/testing/index.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPglite } from "../../support/databases/pglite.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import type { Orm } from "./dialect.ts";
import type { TestedCoordinator, TestedDatabase } from "./drizzle.ts";
import type { Values } from "../../../src/cell/conformance/target.ts";

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

/** Starts the test coordinator of the SDK. */
export async function testCoordinator(): Promise<TestedCoordinator> {
  const coordinator = await startTestCoordinator();
  const { url, keys } = coordinator;
  return { url, fetch: (to, init) => coordinator.fetch(to, init), keys, stop: () => coordinator.close() };
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

interface Connected {
  orm: Orm;
  query: TestedDatabase["query"];
  end: () => Promise<void>;
}

/** Databases on one server, which is stopped with the last of them, and started again for the next. */
class SharedServer {
  readonly #start: () => Promise<DatabaseServer>;
  #server: Promise<DatabaseServer> | undefined;
  #users = 0;

  constructor(start: () => Promise<DatabaseServer>) {
    this.#start = start;
  }

  async database(connect: (url: string) => Connected): Promise<TestedDatabase> {
    this.#server ??= this.#start();
    this.#users += 1;
    const server = await this.#server;
    const { orm, query, end } = connect(server.url(await server.createDatabase()));
    const stop = async (): Promise<void> => {
      await end();
      this.#users -= 1;
      if (this.#users > 0) return;
      this.#server = undefined;
      await server.stop();
    };
    return { orm, query, isConcurrent: true, stop };
  }
}

export class PostgresServer {
  readonly #shared = new SharedServer(startPostgres);

  nodePostgres = (): Promise<TestedDatabase> =>
    this.#shared.database((url) => {
      const pool = new Pool({ connectionString: url, max: 10 });
      const query = async (statement: string) => (await pool.query<Values>(statement)).rows;
      return { orm: drizzleNodePostgres(pool), query, end: () => pool.end() };
    });

  postgresJs = (): Promise<TestedDatabase> =>
    this.#shared.database((url) => {
      const client = postgresJs(url, { max: 10, onnotice: () => {} });
      const query = async (statement: string): Promise<Values[]> => client.unsafe(statement);
      return { orm: drizzlePostgresJs(client), query, end: () => client.end() };
    });
}

export class MariadbServer {
  readonly #shared = new SharedServer(startMariadb);

  mysql2 = (): Promise<TestedDatabase> =>
    this.#shared.database((url) => {
      const pool = createPool({ uri: url, connectionLimit: 10 });
      const query = async (statement: string): Promise<Values[]> => {
        const [rows] = await pool.query<RowDataPacket[]>(statement);
        return rows;
      };
      return { orm: drizzleMysql2(pool) as unknown as Orm, query, end: () => pool.end() };
    });
}
