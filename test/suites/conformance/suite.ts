/**
 * Tests what the HTTP API promises, from outside. The tests know a URL and keys and nothing else, so they can
 * run against any implementation of a coordinator.
 */
import { afterAll, describe } from "vitest";
import { adminSuite } from "./admin.ts";
import { answerSuite } from "./answers.ts";
import { auditSuite } from "./audit.ts";
import { changeSuite } from "./changes.ts";
import { classifySuite } from "./classify.ts";
import { Coordinator, type Open, type Start, type Started } from "./coordinator.ts";
import { exportSuite } from "./exports.ts";
import { historySuite } from "./history.ts";
import { leaseSuite } from "./lease-suite.ts";
import { limitSuite } from "./limits.ts";
import { nameHistorySuite } from "./name-history.ts";
import { searchSuite } from "./searches.ts";
import { nameSuite } from "./names.ts";
import { pageSuite } from "./pages.ts";
import { recordSuite } from "./records.ts";
import { removalSuite } from "./removals.ts";
import { routeSuite } from "./routes.ts";
import { routingSuite } from "./routing.ts";
import { staleSuite } from "./stale.ts";
import { statusSuite } from "./status.ts";
import { transferSuite } from "./transfers.ts";
import { verificationSuite } from "./verification.ts";

export function conformanceSuite(name: string, start: Start): void {
  const started: Started[] = [];
  const open: Open = async (options = {}) => {
    const one = await start(options);
    started.push(one);
    return new Coordinator(one);
  };

  describe(name, () => {
    afterAll(async () => {
      for (const one of started) await one.close();
    });
    describe("leases", () => leaseSuite(open));
    describe("the history of a ledger", () => historySuite(open));
    describe("the history of a name", () => nameHistorySuite(open));
    describe("the search for the names of a subject", () => searchSuite(open));
    describe("the removal of a cell", () => removalSuite(open));
    describe("transfers", () => transferSuite(open));
    describe("names", () => nameSuite(open));
    describe("records", () => recordSuite(open));
    describe("classifying for GitLab's router", () => classifySuite(open));
    describe("routing", () => routingSuite(open));
    describe("exports", () => exportSuite(open));
    describe("the change feed", () => changeSuite(open));
    verificationSuite(open);
    describe("the status of a cell", () => statusSuite(open));
    describe("pages", () => pageSuite(open));
    describe("stale leases", () => staleSuite(open));
    describe("cells and keys", () => adminSuite(open));
    describe("the audit", () => auditSuite(open));
    describe("limits", () => limitSuite(open));
    describe("answers", () => answerSuite(open));
    describe("routes", () => routeSuite(open));
  });
}
