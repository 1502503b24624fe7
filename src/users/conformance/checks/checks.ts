import type { Check } from "../check-context.ts";
import { beginChecks } from "./begins.ts";
import { decisionChecks } from "./decisions.ts";
import { linearizabilityChecks } from "./linearizability.ts";
import { listChecks } from "./lists.ts";
import { readChecks } from "./reads.ts";
import { requestChecks } from "./requests.ts";
import { routeChecks } from "./routes.ts";
import { wireChecks } from "./wire.ts";

/** All checks, in the order in which they run. */
export const checks: readonly Check[] = [
  ...beginChecks,
  ...decisionChecks,
  ...readChecks,
  ...listChecks,
  ...routeChecks,
  ...requestChecks,
  ...wireChecks,
  ...linearizabilityChecks,
];
