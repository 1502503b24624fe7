/** Tests the table of the isolation benchmark. isolation.deep.test.ts runs it. */
import { expect, test } from "vitest";
import { tableOf } from "../../bench/isolation/table.ts";

test("a ratio is the median of the ratios of the rounds", () => {
  const begins = (p99Ms: number) => ({ p50Ms: 1, p99Ms, begins: 10, errors: 1 });
  const rounds = [
    [10, 20],
    [100, 500],
    [20, 60],
  ].map(([alone = 0, loaded = 0]) => ({ alone: begins(alone), loaded: begins(loaded), loadCalls: 2 }));
  expect(tableOf("readers", rounds)).toContain("| p99 ms | 20.0 | 60.0 | 3.0 |");
  expect(tableOf("readers", rounds)).toContain("6 calls of the load, 6 errors of the other cell");
});
