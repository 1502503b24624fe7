/**
 * The whole conformance suite with every adapter that needs a server. Adapters of the same database share one
 * server. What a cell does with any adapter is in test/users/cell/scenarios.
 */
import * as vitest from "vitest";
import { cellConformance, type ConformanceTarget } from "../../../../src/users/cell/conformance/index.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";
import { onMariadb, onPostgres } from "./targets.ts";

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
