/** What is the same in verification with every adapter, so it is tested only with drizzle. */
import type { Suites } from "../../../src/cell/conformance/runner.ts";
import type { ConformanceTarget } from "../../../src/cell/conformance/target.ts";
import { approvalSuite } from "./approval.ts";
import { coordinatorLimitsSuite } from "./coordinator-limits.ts";
import { verifiedCellSuite } from "../../../src/cell/conformance/verification/verified-cell.ts";

export function adapterIndependentSuite(suites: Suites, target: ConformanceTarget<unknown>): void {
  verifiedCellSuite(suites, target, "verification with any adapter", (current) => {
    approvalSuite(suites, current);
    coordinatorLimitsSuite(suites, current);
  });
}
