import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { postgresDialect } from "../scenarios/postgres-dialect.ts";
import { pglite } from "../scenarios/starts.ts";
import { verificationSuite } from "./suite.ts";

const facts = { name: "PGlite", isConcurrent: false, looksAtCommit: true };

vitest.describe("PGlite", () => {
  verificationSuite(suitesOf(vitest), drizzleTarget(facts, postgresDialect, pglite));
});
