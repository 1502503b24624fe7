/** Verification with Kysely. CamelCasePlugin gives the columns the names that drizzle's tables declare. */
import { Column, is, Param, SQL } from "drizzle-orm";
import { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect } from "kysely";
import type { Pool as MysqlPool } from "mysql2/promise";
import type { Pool } from "pg";
import { describe } from "vitest";
import type { CellDatabase } from "../../../src/cell/local.ts";
import { kyselyMysql, kyselyPostgres } from "../../../src/cell/kysely/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { MariadbServer, PostgresServer } from "../scenarios/starts.ts";
import { mysqlDialect, postgresDialect, type Dialect } from "../verification/dialects.ts";
import { verificationSuite } from "../verification/suite.ts";

type Drizzle<Client> = { $client: Client };

/** Reads the conditions of the suite, which are `eq` of drizzle. */
function withDrizzleConditions<Tx>(database: CellDatabase<Tx>): CellDatabase<Tx> {
  const lock = database.lock.bind(database);
  database.lock = (tx, claimable, rows, limit) =>
    lock(
      tx,
      claimable,
      "where" in rows && is(rows.where, SQL) ? { where: asKysely(rows.where) } : rows,
      limit,
    );
  return database;
}

function asKysely({ queryChunks }: SQL): unknown {
  const column = queryChunks.find((chunk) => is(chunk, Column)) as Column;
  const value = queryChunks.find((chunk) => is(chunk, Param)) as Param;
  return { [column.name]: value.value };
}

const withPostgres: Dialect = {
  ...postgresDialect,
  database: (orm) => {
    const { $client: pool } = orm as unknown as Drizzle<Pool>;
    const dialect = new PostgresDialect({ pool });
    const db = new Kysely<never>({ dialect, plugins: [new CamelCasePlugin()] });
    return withDrizzleConditions(kyselyPostgres(db)) as never;
  },
};
const withMysql: Dialect = {
  ...mysqlDialect,
  database: (orm) => {
    const { $client } = orm as unknown as Drizzle<MysqlPool & { pool: never }>;
    const dialect = new MysqlDialect({ pool: $client.pool });
    const db = new Kysely<never>({ dialect, plugins: [new CamelCasePlugin()] });
    return withDrizzleConditions(kyselyMysql(db)) as never;
  },
};

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  verificationSuite("verification through Kysely", withPostgres, new PostgresServer().nodePostgres);
});
describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  verificationSuite("verification through Kysely", withMysql, new MariadbServer().mysql2);
});
