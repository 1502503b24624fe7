import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { pglite, realCoordinator, testCoordinator } from "./starts.ts";
import { scenarioSuite } from "./suite.ts";

scenarioSuite("the in-memory coordinator and PGlite", {
  dialect,
  coordinator: testCoordinator,
  database: pglite,
});
scenarioSuite("the coordinator and PGlite", { dialect, coordinator: realCoordinator, database: pglite });
