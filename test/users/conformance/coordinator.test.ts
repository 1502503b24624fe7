/** The conformance checks against `leasehold/testing`. */
import { expect, onTestFinished, test } from "vitest";
import { checks } from "../../../src/users/conformance/checks/checks.ts";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { ruleOf } from "../../support/rules.ts";
import { notPassed, RULES, rulesShown, run } from "./run.ts";

test("the testing coordinator conforms, and nothing is left of the run", async () => {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  const report = await run(coordinator);
  expect(notPassed(report)).toEqual([]);
  expect(report.left).toEqual([]);
  expect(rulesShown(report)).toEqual(RULES);
});

test("a check has an id of its own, a sentence as its title, and rules that exist", () => {
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z\d/-]+$/.test(id))).toEqual([]);
  expect(checks.map(({ title }) => title).filter((title) => !/^[A-Za-z][^\n]+\.$/.test(title))).toEqual([]);
  const named = new Set(checks.flatMap(({ rules }) => rules));
  expect([...named].filter((rule) => rule !== "API" && !ruleOf.has(rule))).toEqual([]);
});
