import * as vitest from "vitest";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { drizzleTarget } from "../scenarios/drizzle.ts";
import { postgresDialect } from "../scenarios/postgres-dialect.ts";
import { pglite } from "../scenarios/starts.ts";
import { adapterIndependentSuite } from "./adapter-independent.ts";

const facts = { name: "PGlite", isConcurrent: false, looksAtCommit: true };

vitest.describe("PGlite", () => {
  adapterIndependentSuite(suitesOf(vitest), drizzleTarget(facts, postgresDialect, pglite));
});
