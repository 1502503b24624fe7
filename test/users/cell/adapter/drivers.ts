import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { mysql2 } from "../../../../src/users/cell/mysql2/index.ts";
import type { CellDatabase } from "../../../../src/users/cell/local.ts";
import { pg } from "../../../../src/users/cell/pg/index.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";

/** What the clients of both drivers share. */
export interface Tx {
  query(statement: string): Promise<unknown>;
}

/** A server with one database, and a driver that is connected to it. */
export interface Driver {
  database: CellDatabase<Tx>;
  run(statement: string): Promise<unknown>;
  rows(statement: string): Promise<Record<string, unknown>[]>;
  /** Ends the connection of a transaction, as a lost network does. The server has closed it afterwards. */
  cut(tx: Tx): Promise<void>;
  stop(): Promise<void>;
}

export interface DriverKind {
  name: string;
  server: "PostgreSQL" | "MariaDB";
  serial: string;
  json: string;
  start: () => Promise<Driver>;
}

const withPg: DriverKind = {
  name: "pg",
  server: "PostgreSQL",
  serial: "serial PRIMARY KEY",
  json: "jsonb",
  start: async () => {
    const server = await startPostgres();
    const pool = new Pool({ connectionString: server.url(await server.createDatabase()), max: 5 });
    // The pool reports connections that are lost while nobody uses them.
    pool.on("error", () => {});
    const rows = async (statement: string) => (await pool.query<Record<string, unknown>>(statement)).rows;
    return {
      database: pg(pool),
      run: (statement) => pool.query(statement),
      rows,
      cut: async (tx) => {
        const { rows: own } = (await tx.query("SELECT pg_backend_pid() AS pid")) as {
          rows: { pid: number }[];
        };
        await pool.query(`SELECT pg_terminate_backend(${own[0]?.pid}, 60000)`);
      },
      stop: async () => {
        await pool.end();
        await server.stop();
      },
    };
  },
};

const withMysql2: DriverKind = {
  name: "mysql2",
  server: "MariaDB",
  serial: "int AUTO_INCREMENT PRIMARY KEY",
  json: "json",
  start: async () => {
    const server = await startMariadb();
    const pool = createPool({ uri: server.url(await server.createDatabase()), connectionLimit: 5 });
    const rows = async (statement: string) => (await pool.query(statement))[0] as Record<string, unknown>[];
    return {
      database: mysql2(pool),
      run: (statement) => pool.query(statement),
      rows,
      cut: async (tx) => {
        const [own] = (await tx.query("SELECT CONNECTION_ID() AS id")) as [{ id: number }[]];
        await pool.query(`KILL ${own[0]?.id}`);
        const ofKilled = `SELECT id FROM information_schema.processlist WHERE id = ${own[0]?.id}`;
        while ((await rows(ofKilled)).length > 0);
      },
      stop: async () => {
        await pool.end();
        await server.stop();
      },
    };
  },
};

export const drivers = [withPg, withMysql2];
