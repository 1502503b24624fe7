/** The checks find defects that are planted in front of a coordinator, each by its rule. */
import { describe, expect, onTestFinished, test } from "vitest";
import { checks } from "../../../src/users/conformance/checks/checks.ts";
import { byRule } from "../../../src/users/conformance/run-checks.ts";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { defects, withDefect, type Defect } from "./defects.ts";
import { run } from "./run.ts";

const SEED = 1;

/** Calls that are given up depend on time. Each history shows about every second defect. */
const HISTORIES = 30;

async function resultsWith(defect: Defect, only: (id: string, rules: readonly string[]) => boolean) {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  const { results } = await run(
    { ...coordinator, fetch: withDefect(coordinator, defect) },
    {
      checks: checks.filter(({ id, rules }) => only(id, rules)),
      seed: SEED,
      concurrency: 1,
      histories: HISTORIES,
    },
  );
  return results;
}

describe.each(defects)("$name", (defect) => {
  test(`fails ${defect.rule}`, async () => {
    const results = await resultsWith(
      defect,
      (id, rules) => rules.includes(defect.rule) && id !== "linearizability",
    );
    expect(byRule(results).find(({ rule }) => rule === defect.rule)).toMatchObject({ result: "failed" });
    // It is found by what a check expects, and not because a check broke.
    const reasons = results.flatMap(({ reason }) => reason ?? []);
    expect(reasons.filter((reason) => reason.startsWith("could not be checked"))).toEqual([]);
  });
});

test.each(defects.filter(({ isInHistories }) => isInHistories))(
  "a history shows that $name",
  async (defect) => {
    const [result] = await resultsWith(defect, (id) => id === "linearizability");
    expect(result).toMatchObject({ id: "linearizability", result: "failed" });
    expect(result?.reason).toMatch(
      /^history \d+ of seed 1, for USERNAMES:[^\n]+:\nNo order of the operations on [^\n]+ explains all /,
    );
  },
);
