import { describe } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { PostgresServer, realCoordinator, testCoordinator } from "./starts.ts";
import { scenarioSuite } from "./suite.ts";

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  scenarioSuite("the coordinator and node-postgres", {
    dialect,
    coordinator: realCoordinator,
    database: new PostgresServer().nodePostgres,
  });
  scenarioSuite("the in-memory coordinator and postgres-js", {
    dialect,
    coordinator: testCoordinator,
    database: new PostgresServer().postgresJs,
  });
});
