import { cellDatabaseSuite } from "./cell-database.ts";
import { localLeasesSuite, localWorldOf } from "./local-leases.ts";
import { notInstalledSuite } from "./not-installed.ts";
import { suitesOf, type TestRunner } from "./runner.ts";
import { scenarioSuite } from "./scenarios.ts";
import type { ConformanceCoordinator, ConformanceTarget } from "./target.ts";

async function testCoordinator(): Promise<ConformanceCoordinator> {
  const { startTestCoordinator } = await import("../../testing/index.ts");
  const coordinator = await startTestCoordinator();
  const { url, keys } = coordinator;
  return { url, keys, fetch: (to, init) => coordinator.fetch(to, init), stop: () => coordinator.close() };
}

export function cellConformance<Tx>(runner: TestRunner, target: ConformanceTarget<Tx>): void {
  const suites = suitesOf(runner);
  const tested = target as ConformanceTarget<unknown>;
  const coordinator = target.coordinator ?? testCoordinator;
  suites.describe(target.name, () => {
    cellDatabaseSuite(suites, tested);
    localLeasesSuite(suites, "the leases in the database", () => localWorldOf(tested));
    notInstalledSuite(suites, tested, coordinator);
    suites.describe("a cell", () => scenarioSuite(suites, tested, coordinator));
  });
}
