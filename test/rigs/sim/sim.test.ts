import { expect, test } from "vitest";
import { slice } from "../../support/slice.ts";
import { sim } from "./process.ts";

/** Different seeds for each commit. `npm run test:deep` runs the first thousand seeds. */
const UNSEEN_SEEDS = 20;
const FIRST_UNSEEN = 1_000_000;

interface Summary {
  runs: number;
  steps: number;
  missing: string[];
}

const summaryOf = (lines: readonly string[]): Summary => JSON.parse(lines.at(-2) ?? "") as Summary;

test("the seeds of the slice violate nothing", async () => {
  const from = String(FIRST_UNSEEN + slice * UNSEEN_SEEDS);
  const { code, lines } = await sim("--from", from, "--seeds", String(UNSEEN_SEEDS), "--json");
  expect(lines.at(-1)).toBe(`nothing violated in ${UNSEEN_SEEDS} runs`);
  expect(code).toBe(0);
  expect(summaryOf(lines).runs).toBe(UNSEEN_SEEDS);
});

test("--coverage fails if something never occurred, and lists it", async () => {
  const { code, lines } = await sim("--from", "1", "--seeds", "1", "--steps", "1", "--coverage");
  expect(code).toBe(1);
  expect(lines.at(-1)).toContain("never occurred: fault lose, ");
});

test("a run depends on its seed alone", async () => {
  const runs = await Promise.all([1, 2].map(() => sim("--seed", "37", "--steps", "2000", "--json")));
  expect(runs[0]?.code).toBe(0);
  expect(runs[0]?.lines).toEqual(runs[1]?.lines);
});

test("the output of a violation ends with its seed and rule, after the shrunk actions", async () => {
  const found = await sim("--bug", "the last decision wins", "--seeds", "200");
  const [, seed = "", rule = ""] = /^found by seed (\d+) as (I\d+): /.exec(found.lines.at(-1) ?? "") ?? [];
  const { code, lines } = await sim("--bug", "the last decision wins", "--seed", seed);
  expect(code).toBe(1);
  expect(lines.at(-1)).toContain(`seed ${seed} violates ${rule}: `);
  const shrunk = /^seed \d+, (\d+) of (\d+) actions, /.exec(
    lines.find((line) => line.includes(" actions, ")) ?? "",
  );
  expect(Number(shrunk?.[1])).toBeLessThan(Number(shrunk?.[2]) / 2);
});

test("invalid options are refused", async () => {
  expect(await sim("--bug", "no such bug", "--seeds", "1")).toMatchObject({ code: 2 });
  expect(await sim("--seed", "abc")).toMatchObject({
    code: 2,
    lines: ["--seed must be a whole number of at least 0"],
  });
});
