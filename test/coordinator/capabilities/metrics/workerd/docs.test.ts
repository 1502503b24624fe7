import { expect, test } from "vitest";
import page from "../../../../../docs/reference/metrics.md?raw";
import { families } from "../../../../../src/coordinator/capabilities/families.ts";

const SUFFIX = { counter: "_total", gauge: "", histogram: "", gaugehistogram: "", info: "_info" };

test("the reference page lists every family as it is declared, in the same order, and no other", () => {
  const entries = page.matchAll(/^- `(leasehold_\w+(?:\{[\w,]+\})?)` \((\w+)\): (.*(?:\n {2}.*)*)$/gm);
  const listed = [...entries].map(([, name, type, help = ""]) => [name, type, help.replaceAll(/\s+/g, " ")]);
  const declared = Object.entries(families).map(([name, { type, help, labels }]) => [
    `${name}${SUFFIX[type]}${labels.length === 0 ? "" : `{${labels.join(",")}}`}`,
    type,
    help,
  ]);
  expect(listed).toEqual(declared);
});
