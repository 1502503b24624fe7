import * as vitest from "vitest";
import { drizzleTarget } from "./drizzle.ts";
import { cellConformance } from "./index.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { suitesOf } from "./runner.ts";
import { scenarioSuite } from "./scenarios.ts";
import { pglite, realCoordinator } from "./starts.ts";

const target = drizzleTarget(
  { name: "the in-memory coordinator and PGlite", isConcurrent: false, looksAtCommit: true },
  dialect,
  pglite,
);

cellConformance(vitest, target);
vitest.describe("the coordinator and PGlite", () => {
  scenarioSuite(suitesOf(vitest), target, realCoordinator);
});
