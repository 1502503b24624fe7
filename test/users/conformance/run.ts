/** Runs the checks of `leasehold conformance` against a coordinator of the tests. */
import type { WebFetch } from "../../../src/users/conformance/api.ts";
import { checks } from "../../../src/users/conformance/checks/checks.ts";
import {
  byRule,
  runChecks,
  type RunOptions,
  type RunReport,
} from "../../../src/users/conformance/run-checks.ts";

/** What a host of the tests gives. */
export interface Host {
  url: string;
  fetch: WebFetch;
  keys: { cell(id: string): string; readonly operator: string; readonly router: string };
}

/** A run with the keys of cells 1 and 2, a router and an operator, and a small budget. */
export const run = ({ url, fetch, keys }: Host, options: Partial<RunOptions> = {}): Promise<RunReport> =>
  runChecks({
    url,
    fetch,
    keys: { cell: keys.cell("1"), other: keys.cell("2"), router: keys.router, operator: keys.operator },
    deployment: {
      cell: "1",
      otherCell: "2",
      types: { bucket: "USERNAMES", subject: "USER", source: "RAILS_TABLE_USERS" },
    },
    checks,
    prefix: "conformance-test-",
    seed: 1,
    concurrency: 4,
    histories: 2,
    withWire: true,
    signal: new AbortController().signal,
    ...options,
  });

/** The checks that did not pass, with the reason. */
export const notPassed = ({ results }: RunReport): string[] =>
  results.filter(({ result }) => result !== "passed").map(({ id, reason }) => `${id}: ${reason}`);

/** The rules that passing checks have shown, in their order. */
export const rulesShown = ({ results }: RunReport): string[] =>
  byRule(results).flatMap(({ rule, result }) => (result === "passed" ? rule : []));

/** The rules that a run with all keys must show. */
export const RULES: readonly string[] = [
  "B1 B2 B4 B6 B8 B9 B10 B12 C1 C2 C3 C4 C5 C7 C8 E1 H2 K1 K2 L7 M6 P1",
  "Q1 Q2 Q3 Q7 Q9 R1 R2 R3 R4 T4 W1 W2 W3 W5 W6 W7 API",
].flatMap((line) => line.split(" "));
