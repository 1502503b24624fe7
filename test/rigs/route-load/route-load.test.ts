import { expect, test } from "vitest";
import {
  figuresByAge,
  figuresOfReports,
  figuresWithReports,
  isMissed,
  loadByAge,
  reportSizes,
  sliceWithReports,
} from "./bars.ts";

test("[Q5] case 9: by age alone, at most 0.22 of the lookups reach a shard", async () => {
  expect(figuresByAge(await loadByAge(5)).filter(isMissed)).toEqual([]);
});

test("[Q5] case 9: with reports, shards get 0.03 calls per lookup, and one report per second", async () => {
  const figures = await sliceWithReports();
  expect(figuresWithReports(figures).filter(isMissed)).toEqual([]);
  // Without a report, no entry lives for minutes.
  expect(figures.reportsPerShardAndSecond).toBeGreaterThan(0.5);
});

test("[Q3] case 10: reports of 300 claims a second are small", () => {
  const sizes = reportSizes(300);
  expect(sizes.keys).toBe(300 * 300);
  expect(figuresOfReports(sizes).filter(isMissed)).toEqual([]);
});
