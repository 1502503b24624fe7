import { eq } from "drizzle-orm";
import { drizzle as drizzleMysql2 } from "drizzle-orm/mysql2";
import { int, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { Kysely, MysqlDialect, PostgresDialect, type Generated } from "kysely";
import type { CellDatabase } from "leasehold/cell";
import { kyselyMysql, kyselyPostgres, kyselyTables } from "leasehold/cell/kysely";
import { mysql } from "leasehold/cell/mysql";
import { mysql2 } from "leasehold/cell/mysql2";
import { pg, table } from "leasehold/cell/pg";
import { postgres } from "leasehold/cell/postgres";
import { createPool as createCallbackPool } from "mysql2";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { dialects, type Dialect } from "./databases.ts";

interface Connected {
  database: CellDatabase<unknown>;
  /** The table as the driver knows it. */
  users: never;
  /** The driver's condition for the user with this name. */
  named: (username: string) => unknown;
  end: () => Promise<void>;
}

interface Driver {
  name: string;
  dialect: Dialect;
  connect: (url: string) => Connected;
}

interface Database {
  users: { id: Generated<number>; username: string };
}

const poolOf = (url: string) => new Pool({ connectionString: url, max: 5 });
const plainUsers = table<{ id: number; username: string }>("users") as never;
const kyselyUsers = kyselyTables<Database>()("users") as never;
const pgUsers = pgTable("users", { id: serial().primaryKey(), username: text().notNull() });
const mysqlUsers = mysqlTable("users", {
  id: int().autoincrement().primaryKey(),
  username: varchar({ length: 80 }).notNull(),
});
const byColumn = (username: string): unknown => ({ username });

const all: readonly Driver[] = [
  {
    name: "pg",
    dialect: "postgres",
    connect: (url) => {
      const pool = poolOf(url);
      return { database: pg(pool), users: plainUsers, named: byColumn, end: () => pool.end() };
    },
  },
  {
    name: "drizzle with pg",
    dialect: "postgres",
    connect: (url) => {
      const pool = poolOf(url);
      return {
        database: postgres(drizzleNodePostgres(pool)) as CellDatabase<unknown>,
        users: pgUsers as never,
        named: (username) => eq(pgUsers.username, username),
        end: () => pool.end(),
      };
    },
  },
  {
    name: "Kysely with pg",
    dialect: "postgres",
    connect: (url) => {
      const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: poolOf(url) }) });
      return {
        database: kyselyPostgres(db) as CellDatabase<unknown>,
        users: kyselyUsers,
        named: byColumn,
        end: () => db.destroy(),
      };
    },
  },
  {
    name: "mysql2",
    dialect: "mysql",
    connect: (url) => {
      const pool = createPool({ uri: url, connectionLimit: 5 });
      return { database: mysql2(pool), users: plainUsers, named: byColumn, end: () => pool.end() };
    },
  },
  {
    name: "drizzle with mysql2",
    dialect: "mysql",
    connect: (url) => {
      const pool = createPool({ uri: url, connectionLimit: 5 });
      return {
        database: mysql(drizzleMysql2(pool)) as CellDatabase<unknown>,
        users: mysqlUsers as never,
        named: (username) => eq(mysqlUsers.username, username),
        end: () => pool.end(),
      };
    },
  },
  {
    name: "Kysely with mysql2",
    dialect: "mysql",
    connect: (url) => {
      const pool = createCallbackPool({ uri: url, connectionLimit: 5 });
      const db = new Kysely<Database>({ dialect: new MysqlDialect({ pool }) });
      return {
        database: kyselyMysql(db) as CellDatabase<unknown>,
        users: kyselyUsers,
        named: byColumn,
        end: () => db.destroy(),
      };
    },
  },
];

/** The drivers whose server runs. Each gets a cell of its own. */
export const drivers = all.filter(({ dialect }) => dialects.includes(dialect));
