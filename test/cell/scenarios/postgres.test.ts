import * as vitest from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { drizzleTarget } from "./drizzle.ts";
import { cellConformance } from "../../../src/cell/conformance/index.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { PostgresServer, realCoordinator } from "./starts.ts";

vitest.describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  cellConformance(vitest, {
    ...drizzleTarget(
      { name: "the coordinator and node-postgres", isConcurrent: true, looksAtCommit: false },
      dialect,
      new PostgresServer().nodePostgres,
    ),
    coordinator: realCoordinator,
  });
  cellConformance(
    partOfSuite(vitest, 3),
    drizzleTarget(
      { name: "the in-memory coordinator and postgres-js", isConcurrent: true, looksAtCommit: true },
      dialect,
      new PostgresServer().postgresJs,
    ),
  );
});
