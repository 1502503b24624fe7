import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { mysqlDialect } from "../scenarios/mysql-dialect.ts";
import { MariadbServer } from "../scenarios/starts.ts";
import { adapterIndependentSuite } from "./adapter-independent.ts";

const facts = { name: "mysql2", isConcurrent: true, looksAtCommit: true };

vitest.describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  const { mysql2 } = new MariadbServer();
  adapterIndependentSuite(suitesOf(vitest), drizzleTarget(facts, mysqlDialect, mysql2));
});
