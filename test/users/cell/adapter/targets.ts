/** All adapters as targets of the conformance suite, by the server on which they run. */
import type { Generated } from "kysely";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { Pool, type PoolClient } from "pg";
import startPostgresJs, { type TransactionSql } from "postgres";
import type { Transaction } from "kysely";
import type { ConformanceTarget, Values } from "../../../../src/users/cell/conformance/index.ts";
import { kyselyTables } from "../../../../src/users/cell/kysely/index.ts";
import { mysql2 } from "../../../../src/users/cell/mysql2/index.ts";
import { pg, table } from "../../../../src/users/cell/pg/index.ts";
import { prismaPostgres, prismaTables } from "../../../../src/users/cell/prisma/index.ts";
import { kinds, run } from "../kysely/servers.ts";
import type { Prisma } from "../prisma/generated/client.ts";
import { prismaDatabase } from "../prisma/start.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { mysqlDialect } from "../scenarios/mysql-dialect.ts";
import { postgresDialect } from "../scenarios/postgres-dialect.ts";
import { drizzleOnMysql2, drizzleOnNodePostgres, drizzleOnPostgresJs } from "../scenarios/starts.ts";
import { postgresJsDatabase } from "./postgres-js-database.ts";

/** Creates an empty database on the server, and answers its URL. */
type CreateDatabase = () => Promise<string>;

const facts = { isConcurrent: true };
const options = { fenceWaitMs: 300 };
const where = (_: unknown, values: Values): Values => values;
const target = <Tx>(its: ConformanceTarget<Tx>) => its as ConformanceTarget<unknown>;

/** For adapters that read the tables' columns from the database. */
const tables = {
  users: table("users"),
  emails: table("emails"),
  organizations: table("organizations"),
  redirects: table("redirects"),
  projects: table("projects"),
  accounts: table("accounts"),
  teams: table("teams"),
};

export const onPostgres = (create: CreateDatabase): ConformanceTarget<unknown>[] => [
  drizzleTarget({ ...facts, name: "drizzle with node-postgres" }, postgresDialect, async () =>
    drizzleOnNodePostgres(await create()),
  ),
  drizzleTarget({ ...facts, name: "drizzle with postgres-js" }, postgresDialect, async () =>
    drizzleOnPostgresJs(await create()),
  ),
  target<PoolClient>({
    ...facts,
    name: "pg",
    dialect: "postgres",
    open: async () => {
      const pool = new Pool({ connectionString: await create(), max: 10 });
      return {
        tables,
        database: () => pg(pool, options),
        where,
        query: async (statement) => (await pool.query<Values>(statement)).rows,
        write: (client, statement) => client.query(statement),
        stop: () => pool.end(),
      };
    },
  }),
  target<TransactionSql>({
    ...facts,
    name: "the guide's adapter for postgres-js",
    dialect: "postgres",
    open: async () => {
      const sql = startPostgresJs(await create(), { max: 10, onnotice: () => {} });
      return {
        tables,
        database: () => postgresJsDatabase(sql, options),
        where,
        query: (statement) => sql.unsafe<Values[]>(statement),
        write: (tx, statement) => tx.unsafe(statement),
        stop: () => sql.end(),
      };
    },
  }),
  onKysely("PostgreSQL", create),
  target<Prisma.TransactionClient>({
    ...facts,
    name: "Prisma",
    dialect: "postgres",
    open: async () => {
      const { prisma, query, stop } = prismaDatabase(await create());
      return {
        tables: prismaTables(prisma),
        database: () => prismaPostgres(prisma, options),
        where: (_, values) =>
          Object.fromEntries(
            Object.entries(values).map(([name, value]) => [
              name,
              Array.isArray(value) ? { in: value as unknown[] } : value,
            ]),
          ),
        query,
        write: (db, statement) => db.$executeRawUnsafe(statement),
        stop,
      };
    },
  }),
];

export const onMariadb = (create: CreateDatabase): ConformanceTarget<unknown>[] => [
  drizzleTarget({ ...facts, name: "drizzle with mysql2" }, mysqlDialect, async () =>
    drizzleOnMysql2(await create()),
  ),
  target<PoolConnection>({
    ...facts,
    name: "mysql2",
    dialect: "mysql",
    open: async () => {
      const pool = createPool({ uri: await create(), connectionLimit: 10 });
      return {
        tables,
        database: () => mysql2(pool, options),
        where,
        query: async (statement) => (await pool.query<RowDataPacket[]>(statement))[0],
        write: (connection, statement) => connection.query(statement),
        stop: () => pool.end(),
      };
    },
  }),
  onKysely("MariaDB", create),
];

interface KyselyRows {
  users: { id: Generated<number>; username: string; bio: string | null };
  emails: {
    id: Generated<number>;
    owner: number;
    email: string | null;
    confirmed: Generated<boolean | number>;
  };
  organizations: { id: Generated<number>; path: string };
  redirects: { id: Generated<number>; path: string };
  projects: { id: string; path: string };
  accounts: {
    id: Generated<number>;
    username: string;
    bot: Generated<boolean | number>;
    updated_at: Generated<Date>;
  };
  teams: { id: string; path: string };
}

function onKysely(server: "PostgreSQL" | "MariaDB", create: CreateDatabase): ConformanceTarget<unknown> {
  const kind = kinds.find(({ name }) => name === server);
  if (kind === undefined) throw new Error(`Kysely has no dialect for ${server}`);
  const kyselyTable = kyselyTables<KyselyRows>();
  return target<Transaction<KyselyRows>>({
    ...facts,
    name: "Kysely",
    dialect: kind.dialect,
    open: async () => {
      const db = kind.connect<KyselyRows>(await create(), {});
      return {
        tables: {
          users: kyselyTable("users"),
          emails: kyselyTable("emails"),
          organizations: kyselyTable("organizations"),
          redirects: kyselyTable("redirects"),
          projects: kyselyTable("projects"),
          accounts: kyselyTable("accounts"),
          teams: kyselyTable("teams"),
        },
        database: () => kind.database(db, options),
        where,
        query: (statement) => run(db, statement),
        write: (tx, statement) => run(tx, statement),
        stop: () => db.destroy(),
      };
    },
  });
}
