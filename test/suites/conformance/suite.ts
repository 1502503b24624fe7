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
import { bodySuite, limitSuite } from "./limits.ts";
import { nameHistorySuite } from "./name-history.ts";
import { searchSuite } from "./searches.ts";
import { nameSuite } from "./names.ts";
import { pageSuite } from "./pages.ts";
import { recordSuite } from "./records.ts";
import { refusalSuite } from "./refusals.ts";
import { removalSuite } from "./removals.ts";
import { routeSuite } from "./routes.ts";
import { routingSuite } from "./routing.ts";
import { staleSuite } from "./stale.ts";
import { statusSuite } from "./status.ts";
import { transferSuite } from "./transfers.ts";
import { verificationSuite } from "./verification.ts";

/** Everything that the API promises. It runs in workerd, where Leasehold is deployed. */
export function conformanceSuite(name: string, start: Start): void {
  suiteOn(name, start, (open) => {
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
    describe("refusals", () => refusalSuite(open));
  });
}

/**
 * What can differ by host: how it reads requests, sends answers and streams, and reaches its objects. The
 * checks of `leasehold conformance` (src/users/conformance) run on every host, too.
 */
export function hostSuite(name: string, start: Start): void {
  suiteOn(name, start, (open) => {
    describe("names", () => nameSuite(open));
    describe("the change feed", () => changeSuite(open));
    describe("bodies", () => bodySuite(open));
    describe("answers", () => answerSuite(open));
    describe("routes", () => routeSuite(open));
  });
}

function suiteOn(name: string, start: Start, declare: (open: Open) => void): void {
  const started: Started[] = [];
  describe(name, () => {
    afterAll(async () => {
      for (const one of started) await one.close();
    });
    declare(async (options = {}) => {
      const one = await start(options);
      started.push(one);
      return new Coordinator(one);
    });
  });
}
