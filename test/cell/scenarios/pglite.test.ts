import * as vitest from "vitest";
import { isInstalled } from "../../support/databases/programs.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { drizzleTarget } from "./drizzle.ts";
import { cellConformance } from "../../../src/cell/conformance/index.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { suitesOf } from "../../../src/cell/conformance/runner.ts";
import { scenarioSuite } from "../../../src/cell/conformance/scenarios.ts";
import { pglite, realCoordinator } from "./starts.ts";

const target = drizzleTarget(
  { name: "the in-memory coordinator and PGlite", isConcurrent: false, looksAtCommit: true },
  dialect,
  pglite,
);

// Without PostgreSQL, this is the dialect's only suite.
const part = partOfSuite(vitest, isInstalled("PostgreSQL") ? 3 : 1);
cellConformance(part, target);
vitest.describe("the coordinator and PGlite", () => {
  scenarioSuite(suitesOf(part), target, realCoordinator);
});
