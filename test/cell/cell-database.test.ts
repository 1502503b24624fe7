import { describe } from "vitest";
import { cellDatabaseSuite } from "../suites/cell-database.ts";
import { isSkipped } from "../support/databases/available.ts";
import { mysqlDialect } from "./scenarios/mysql-dialect.ts";
import { postgresDialect } from "./scenarios/postgres-dialect.ts";
import { MariadbServer, pglite, PostgresServer } from "./scenarios/starts.ts";

cellDatabaseSuite("PGlite", postgresDialect, pglite);

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  cellDatabaseSuite("node-postgres", postgresDialect, new PostgresServer().nodePostgres);
  cellDatabaseSuite("postgres-js", postgresDialect, new PostgresServer().postgresJs);
});

describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  cellDatabaseSuite("mysql2", mysqlDialect, new MariadbServer().mysql2);
});
