import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { mysqlDialect } from "../scenarios/mysql-dialect.ts";
import { MariadbServer } from "../scenarios/starts.ts";
import { adapterIndependentSuite } from "./adapter-independent.ts";
import { verificationSuite } from "./suite.ts";

const facts = { name: "mysql2", isConcurrent: true, looksAtCommit: true };

vitest.describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  const { mysql2 } = new MariadbServer();
  const target = drizzleTarget(facts, mysqlDialect, mysql2);
  verificationSuite(suitesOf(vitest), target);
  adapterIndependentSuite(suitesOf(vitest), target);
});
