/** A cell whose own tables are missing, or have been dropped. */
import { NotInstalledError } from "../errors.ts";
import type { Suites } from "./runner.ts";
import type { ConformanceCoordinator, ConformanceDatabase, ConformanceTarget } from "./target.ts";
import { ConformanceCell, createTables, fresh } from "./world.ts";

export function notInstalledSuite(
  { describe, test, expect, beforeAll, afterAll }: Suites,
  target: ConformanceTarget<unknown>,
  startCoordinator: () => Promise<ConformanceCoordinator>,
): void {
  describe("without the cell's own tables", () => {
    let coordinator: ConformanceCoordinator;
    let opened: ConformanceDatabase<unknown>;
    let cell: ConformanceCell;
    const stops: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      coordinator = await startCoordinator();
      stops.push(() => coordinator.stop());
      opened = await target.open();
      stops.push(() => opened.stop());
      await createTables(target, opened);
    });
    afterAll(async () => {
      for (const stop of stops.toReversed()) await stop();
    });

    const newCell = (): ConformanceCell => {
      const made = new ConformanceCell("1", target, coordinator, opened);
      stops.push(() => made.cell.flush());
      return made;
    };
    const insert = () => cell.transaction((tx) => tx.insert("organizations", { path: fresh("path") }));
    const calls: [name: string, call: () => Promise<unknown>][] = [
      ["transaction", insert],
      ["preflight", () => cell.preflight((plan) => plan.insert("projects", { id: "7", path: "seven" }))],
      ["bulkInsert", () => cell.bulkInsert("organizations", [{ path: fresh("path") }])],
      ["bulkDelete", () => cell.bulkDelete("organizations")],
      ["reconcile", () => cell.cell.reconcile({ full: true })],
      ["verify", () => cell.cell.verify()],
    ];

    for (const [name, call] of calls)
      test(`${name} says how to create them`, async () => {
        cell = newCell();
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
      cell = newCell();
      await cell.cell.install();
      await opened.query("DROP TABLE leasehold_outstanding_leases");
      await expect(insert()).rejects.toThrow("table leasehold_outstanding_leases does not exist");
      await cell.cell.install();
      await insert();
      // A missing table of the application is its own error.
      const failed = cell.transaction((tx) => opened.write(tx.db, "SELECT * FROM leaseholders"));
      await expect(failed).rejects.not.toBeInstanceOf(NotInstalledError);
    });
  });
}
