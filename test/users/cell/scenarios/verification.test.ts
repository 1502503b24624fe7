/** What verification finds, decides and repairs, whatever the adapter is. It runs on PGlite. */
import * as vitest from "vitest";
import { suitesOf } from "../../../../src/users/cell/conformance/target.ts";
import { verifiedCellSuite } from "../../../../src/users/cell/conformance/verification/verified-cell.ts";
import { pgliteTarget } from "./starts.ts";
import { approvalSuite } from "./verification/approval.ts";
import { backfillSuite } from "./verification/backfill.ts";
import { coordinatorLimitsSuite } from "./verification/coordinator-limits.ts";
import { driftSuite } from "./verification/drift.ts";
import { keptClaimsSuite } from "./verification/kept-claims.ts";
import { scopeDigestSuite } from "./verification/scope-digest.ts";
import { stopAndResumeSuite } from "./verification/stop-and-resume.ts";

const suites = suitesOf(vitest);

verifiedCellSuite(suites, pgliteTarget, "verification", (current) => {
  driftSuite(current);
  scopeDigestSuite(current);
  backfillSuite(current);
  keptClaimsSuite(current);
  stopAndResumeSuite(current);
  approvalSuite(current);
  coordinatorLimitsSuite(current);
});
