import { describe } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { mysqlDialect } from "./mysql-dialect.ts";
import { MariadbServer, realCoordinator, testCoordinator } from "./starts.ts";
import { scenarioSuite } from "./suite.ts";

describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  const dialect = mysqlDialect;
  scenarioSuite("the coordinator and mysql2", {
    dialect,
    coordinator: realCoordinator,
    database: new MariadbServer().mysql2,
  });
  scenarioSuite("the in-memory coordinator and mysql2", {
    dialect,
    coordinator: testCoordinator,
    database: new MariadbServer().mysql2,
  });
});
