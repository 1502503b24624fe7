import { CompiledQuery, Kysely, MysqlDialect, PostgresDialect, type KyselyPlugin } from "kysely";
import { createPool } from "mysql2";
import { Pool } from "pg";
import { kyselyMysql, kyselyPostgres } from "../../../../src/users/cell/kysely/index.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

interface Options {
  plugins?: KyselyPlugin[];
}

export interface ServerKind {
  name: "PostgreSQL" | "MariaDB";
  dialect: "postgres" | "mysql";
  serial: string;
  text: string;
  time: string;
  start: () => Promise<DatabaseServer>;
  connect: <DB>(url: string, options: Options) => Kysely<DB>;
  database: typeof kyselyPostgres;
  /** The id of the transaction's connection, and the statement that ends it. */
  kill: { ownId: string; statement: (id: number) => string };
}

function connectPostgres<DB>(url: string, { plugins = [] }: Options): Kysely<DB> {
  const pool = new Pool({ connectionString: url, max: 10 });
  pool.on("error", () => {});
  // Without it, a connection that is lost between two statements would end the process.
  pool.on("connect", (connection) => connection.on("error", () => {}));
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }), plugins });
}

function connectMariadb<DB>(url: string, { plugins = [] }: Options): Kysely<DB> {
  const pool = createPool({ uri: url, connectionLimit: 10 });
  return new Kysely<DB>({ dialect: new MysqlDialect({ pool }), plugins });
}

export const kinds: readonly ServerKind[] = [
  {
    name: "PostgreSQL",
    dialect: "postgres",
    serial: "serial PRIMARY KEY",
    text: "text",
    time: "timestamptz",
    start: startPostgres,
    connect: connectPostgres,
    database: kyselyPostgres,
    kill: { ownId: "SELECT pg_backend_pid() AS id", statement: (id) => `SELECT pg_terminate_backend(${id})` },
  },
  {
    name: "MariaDB",
    dialect: "mysql",
    serial: "int AUTO_INCREMENT PRIMARY KEY",
    text: "varchar(80)",
    time: "datetime(3)",
    start: startMariadb,
    connect: connectMariadb,
    database: kyselyMysql,
    kill: { ownId: "SELECT CONNECTION_ID() AS id", statement: (id) => `KILL ${id}` },
  },
];

/** Runs a statement without plugins. Answers its rows. */
export async function run<DB>(db: Kysely<DB>, statement: string): Promise<Record<string, unknown>[]> {
  const query = CompiledQuery.raw(statement);
  return (await db.withoutPlugins().executeQuery<Record<string, unknown>>(query)).rows;
}
