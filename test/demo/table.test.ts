import { expect, it } from "vitest";
import { renderConclusion } from "../../demo/report.ts";
import { renderTable, thousands } from "../../demo/table.ts";

it("aligns the first column to the left and the others to the right", () => {
  const lines = renderTable({
    title: "NAMES",
    head: ["cell 1", "cell 2"],
    rows: [
      ["wanted", 4_250, 12],
      ["a longer first column", 1, 1_234_567],
    ],
  });
  expect(lines).toEqual([
    "NAMES                    cell 1      cell 2",
    "-------------------------------------------",
    "wanted                    4,250          12",
    "a longer first column         1   1,234,567",
  ]);
});

it("pads the first column, leaves no trailing blanks, and accepts short rows", () => {
  expect(renderTable({ title: "T", head: ["n", "m"], rows: [["a", 1], ["b"]], firstWidth: 5 })).toEqual([
    "T             n         m",
    "-------------------------",
    "a             1",
    "b",
  ]);
});

it("groups digits by thousands", () => {
  expect([0, 999, 1_000, 12_345_678].map(thousands)).toEqual(["0", "999", "1,000", "12,345,678"]);
});

it("lists the differences, and counts those beyond the limit", () => {
  expect(renderConclusion([])[0]).toMatch(/^CHECK PASSED/);
  expect(renderConclusion(["x: two owners"])).toEqual(["CHECK FAILED: 1 difference", "  x: two owners"]);
  const many = renderConclusion(Array.from({ length: 60 }, (_, index) => `difference ${index}`));
  expect(many).toHaveLength(52);
  expect(many.at(-1)).toBe("  … and 10 more");
});
