/** A cell whose own tables are missing, or have been dropped. */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NotInstalledError } from "../../../src/cell/errors.ts";
import { isSkipped } from "../../support/databases/available.ts";
import type { Dialect } from "./dialect.ts";
import { mysqlDialect } from "./mysql-dialect.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { MariadbServer, pglite, PostgresServer, testCoordinator } from "./starts.ts";
import { fresh, TestedCell, type TestedCoordinator, type TestedDatabase } from "./world.ts";

suite("PGlite", postgresDialect, pglite);
describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  suite("node-postgres", postgresDialect, new PostgresServer().nodePostgres);
  suite("postgres-js", postgresDialect, new PostgresServer().postgresJs);
});
describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  suite("mysql2", mysqlDialect, new MariadbServer().mysql2);
});

function suite(name: string, dialect: Dialect, start: () => Promise<TestedDatabase>): void {
  const { organizations, projects } = dialect.tables;

  describe(name, () => {
    let coordinator: TestedCoordinator;
    let tested: TestedDatabase;
    let cell: TestedCell;

    beforeAll(async () => {
      [coordinator, tested] = await Promise.all([testCoordinator(), start()]);
      for (const statement of dialect.createTables) await tested.orm.execute(sql.raw(statement));
    });
    afterAll(async () => {
      await cell.cell.flush();
      await tested.stop();
      await coordinator.stop();
    });

    const insert = () => cell.cell.transaction((tx) => tx.insert(organizations, { path: fresh("path") }));
    const calls: [name: string, call: () => Promise<unknown>][] = [
      ["transaction", insert],
      ["preflight", () => cell.cell.preflight((plan) => plan.insert(projects, { id: "7", path: "seven" }))],
      ["bulkInsert", () => cell.cell.bulkInsert(organizations, [{ path: fresh("path") }])],
      ["bulkDelete", () => cell.cell.bulkDelete(organizations, undefined)],
      ["reconcile", () => cell.cell.reconcile({ full: true })],
      ["verify", () => cell.cell.verify()],
    ];

    test.each(calls)("%s says how to create them", async (_, call) => {
      cell = new TestedCell("1", dialect, coordinator, tested);
      const error = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(NotInstalledError);
      expect(error).toMatchObject({ code: "NOT_INSTALLED", retryable: false });
      expect(String(error)).toMatch(/^NotInstalledError: the cell's table leasehold_\w+ does not exist/);
      expect(String(error)).toContain("call `await cell.install()`");
      expect((error as Error).cause).toBeInstanceOf(Error);
    });

    test("one missing table is named, and `install` creates it", async () => {
      cell = new TestedCell("1", dialect, coordinator, tested);
      await cell.cell.install();
      await tested.orm.execute(sql`DROP TABLE leasehold_outstanding_leases`);
      await expect(insert()).rejects.toThrow("table leasehold_outstanding_leases does not exist");
      await cell.cell.install();
      await insert();
      // A missing table of the application is its own error.
      const failed = cell.cell.transaction((tx) => tx.db.execute(sql`SELECT * FROM leaseholders`));
      await expect(failed).rejects.not.toBeInstanceOf(NotInstalledError);
    });
  });
}
