/** The conformance checks against `leasehold/testing`. */
import { expect, onTestFinished, test } from "vitest";
import { startTestCoordinator } from "../../src/testing/index.ts";
import { notPassed, run } from "./run.ts";

test("the testing coordinator conforms, and nothing is left of the run", async () => {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  const report = await run(coordinator);
  expect(notPassed(report)).toEqual([]);
  expect(report.left).toEqual([]);
});
