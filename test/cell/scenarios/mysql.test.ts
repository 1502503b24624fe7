import * as vitest from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { drizzleTarget } from "./drizzle.ts";
import { cellConformance } from "../../../src/cell/conformance/index.ts";
import { mysqlDialect as dialect } from "./mysql-dialect.ts";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { scenarioSuite } from "../../../src/cell/conformance/scenarios.ts";
import { MariadbServer, realCoordinator } from "./starts.ts";

vitest.describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  const target = drizzleTarget(
    { name: "the in-memory coordinator and mysql2", isConcurrent: true, looksAtCommit: true },
    dialect,
    new MariadbServer().mysql2,
  );
  cellConformance(vitest, target);
  vitest.describe("the coordinator and mysql2", () => {
    scenarioSuite(suitesOf(partOfSuite(vitest, 3)), target, realCoordinator);
  });
});
