import { CompiledQuery, Kysely, MysqlDialect, PostgresDialect, type KyselyPlugin } from "kysely";
import { createPool } from "mysql2";
import { Pool } from "pg";
import { kyselyMysql, kyselyPostgres } from "../../../src/cell/kysely/index.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPostgres } from "../../support/databases/postgres.ts";

interface Options {
  plugins?: KyselyPlugin[];
  connections?: number;
}

/** A server with one database, and Kysely on it. */
export interface Server<DB> {
  db: Kysely<DB>;
  stop: () => Promise<void>;
}

export interface ServerKind {
  name: "PostgreSQL" | "MariaDB";
  dialect: "postgres" | "mysql";
  serial: string;
  text: string;
  time: string;
  start: <DB>(options?: Options) => Promise<Server<DB>>;
  database: typeof kyselyPostgres;
  /** The id of the transaction's connection, and the statement that ends it. */
  kill: { ownId: string; statement: (id: number) => string };
}

async function startOnPostgres<DB>({ plugins = [], connections = 10 }: Options = {}): Promise<Server<DB>> {
  const server = await startPostgres();
  const pool = new Pool({ connectionString: server.url(await server.createDatabase()), max: connections });
  pool.on("error", () => {});
  // Without it, a connection that is lost between two statements would end the process.
  pool.on("connect", (connection) => connection.on("error", () => {}));
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }), plugins });
  return { db, stop: () => db.destroy().then(() => server.stop()) };
}

async function startOnMariadb<DB>({ plugins = [], connections = 10 }: Options = {}): Promise<Server<DB>> {
  const server = await startMariadb();
  const pool = createPool({ uri: server.url(await server.createDatabase()), connectionLimit: connections });
  const db = new Kysely<DB>({ dialect: new MysqlDialect({ pool }), plugins });
  return { db, stop: () => db.destroy().then(() => server.stop()) };
}

export const kinds: readonly ServerKind[] = [
  {
    name: "PostgreSQL",
    dialect: "postgres",
    serial: "serial PRIMARY KEY",
    text: "text",
    time: "timestamptz",
    start: startOnPostgres,
    database: kyselyPostgres,
    kill: { ownId: "SELECT pg_backend_pid() AS id", statement: (id) => `SELECT pg_terminate_backend(${id})` },
  },
  {
    name: "MariaDB",
    dialect: "mysql",
    serial: "int AUTO_INCREMENT PRIMARY KEY",
    text: "varchar(80)",
    time: "datetime(3)",
    start: startOnMariadb,
    database: kyselyMysql,
    kill: { ownId: "SELECT CONNECTION_ID() AS id", statement: (id) => `KILL ${id}` },
  },
];

/** Runs a statement without plugins. Answers its rows. */
export async function run<DB>(db: Kysely<DB>, statement: string): Promise<Record<string, unknown>[]> {
  const query = CompiledQuery.raw(statement);
  return (await db.withoutPlugins().executeQuery<Record<string, unknown>>(query)).rows;
}
