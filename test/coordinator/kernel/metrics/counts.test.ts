import { expect, test } from "vitest";
import { Counts } from "../../../../src/coordinator/kernel/metrics/counts.ts";

test("[M6] more labels than there is room for are counted together", () => {
  const counts = new Counts();
  for (let n = 0; n < 80; n += 1) counts.add(`label-${n}`);
  counts.add("label-3");
  const entries = new Map(counts.entries);
  expect(entries.size).toBe(50);
  expect(entries.get("label-3")).toBe(2);
  expect(entries.get("other")).toBe(31);
});
