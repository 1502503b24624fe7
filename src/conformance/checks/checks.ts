import type { Check } from "../check.ts";
import { beginChecks } from "./begins.ts";
import { decisionChecks } from "./decisions.ts";

/** All checks, in the order in which they run. */
export const checks: readonly Check[] = [...beginChecks, ...decisionChecks];
