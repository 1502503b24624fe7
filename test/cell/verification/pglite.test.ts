import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { postgresDialect } from "../scenarios/postgres-dialect.ts";
import { pglite } from "../scenarios/starts.ts";
import { adapterIndependentSuite } from "./adapter-independent.ts";
import { verificationSuite } from "./suite.ts";

const facts = { name: "PGlite", isConcurrent: false, looksAtCommit: true };

vitest.describe("PGlite", () => {
  const target = drizzleTarget(facts, postgresDialect, pglite);
  verificationSuite(suitesOf(vitest), target);
  adapterIndependentSuite(suitesOf(vitest), target);
});
