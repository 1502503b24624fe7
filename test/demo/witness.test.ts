import { expect, it } from "vitest";
import { Witness } from "../../demo/witness.ts";

it("notices a name that two cells had for a while, even if one cell has it at the end", () => {
  const witness = new Witness();
  witness.recordTake("1", "Ada");
  witness.recordTake("2", "ada");
  witness.recordRelease("2", "ADA");
  expect(witness.violations).toEqual(["ada: cell 2 saved it while cell 1 had it"]);
});

it("notices a release by a cell that did not have the name", () => {
  const witness = new Witness();
  witness.recordRelease("1", "ada");
  expect(witness.violations).toEqual(["ada: cell 1 released it without having it"]);
});

it("accepts a name that passes from one cell to the other", () => {
  const witness = new Witness();
  witness.recordTake("1", "ada");
  witness.recordRelease("1", "ada");
  witness.recordTake("2", "ada");
  expect(witness.violations).toEqual([]);
});
