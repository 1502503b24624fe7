import { expect, it } from "vitest";
import { Witness } from "../../demo/witness.ts";

it("sees a name that two cells had for a while, even when one has it at the end", () => {
  const witness = new Witness();
  witness.recordTake("1", "Ada");
  witness.recordTake("2", "ada");
  witness.recordRelease("2", "ADA");
  expect(witness.violations).toEqual(["ada: cell 2 saved it while cell 1 had it"]);
});

it("sees a name that was given up by who did not have it", () => {
  const witness = new Witness();
  witness.recordRelease("1", "ada");
  expect(witness.violations).toEqual(["ada: cell 1 gave up what it did not have"]);
});

it("is content when a name changes hands", () => {
  const witness = new Witness();
  witness.recordTake("1", "ada");
  witness.recordRelease("1", "ada");
  witness.recordTake("2", "ada");
  expect(witness.violations).toEqual([]);
});
