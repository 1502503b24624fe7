/** The conformance checks against the Worker with real Durable Objects and D1. */
import { expect, test } from "vitest";
import { keyOf, startDeployment } from "../../../support/workerd/api.ts";
import { notPassed, RULES, rulesShown, run } from "../run.ts";

test("the Worker in workerd conforms, and nothing is left of the run", async () => {
  const api = await startDeployment("1", "2");
  const [first, second, router, operator] = await Promise.all([
    keyOf("cell 1"),
    keyOf("cell 2"),
    keyOf("router"),
    keyOf("operator"),
  ]);
  const keys = { router, operator, cell: (id: string) => (id === "1" ? first : second) };
  const report = await run({ url: api.url, fetch: (url, init) => api.fetch(url, init), keys });
  expect(notPassed(report)).toEqual([]);
  expect(report.left).toEqual([]);
  expect(rulesShown(report)).toEqual(RULES);
});
