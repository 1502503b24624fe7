import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { postgresDialect } from "../scenarios/postgres-dialect.ts";
import { PostgresServer } from "../scenarios/starts.ts";
import { adapterIndependentSuite } from "./adapter-independent.ts";

const facts = { name: "node-postgres", isConcurrent: true, looksAtCommit: false };

vitest.describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  const { nodePostgres } = new PostgresServer();
  adapterIndependentSuite(suitesOf(vitest), drizzleTarget(facts, postgresDialect, nodePostgres));
});
