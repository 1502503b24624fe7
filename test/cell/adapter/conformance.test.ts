/**
 * The whole conformance suite with every adapter. The adapters of a server share it. What a cell does with
 * any adapter is in test/cell/scenarios.
 */
import * as vitest from "vitest";
import { cellConformance, type ConformanceTarget } from "../../../src/cell/conformance/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { pgliteTarget, testCoordinator } from "../scenarios/starts.ts";
import { onMariadb, onPostgres } from "./targets.ts";

cellConformance(vitest, { ...pgliteTarget, coordinator: testCoordinator });

function conformanceOn(
  name: "PostgreSQL" | "MariaDB",
  start: () => Promise<DatabaseServer>,
  targetsOf: (createDatabase: () => Promise<string>) => ConformanceTarget<unknown>[],
): void {
  vitest.describe.skipIf(isSkipped(name))(name, () => {
    let server: DatabaseServer;
    vitest.beforeAll(async () => {
      server = await start();
    });
    vitest.afterAll(() => server.stop());
    const targets = targetsOf(async () => server.url(await server.createDatabase()));
    for (const target of targets) cellConformance(vitest, target);
  });
}

conformanceOn("PostgreSQL", startPostgres, onPostgres);
conformanceOn("MariaDB", startMariadb, onMariadb);
