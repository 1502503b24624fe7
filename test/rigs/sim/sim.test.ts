import { expect, test } from "vitest";
import { readKnownSeeds } from "./known-seeds.ts";
import { sim } from "./process.ts";

test("--coverage fails if something never occurred, and lists it", async () => {
  const { code, lines } = await sim("--from", "1", "--seeds", "1", "--steps", "1", "--coverage");
  expect(code).toBe(1);
  expect(lines.at(-1)).toContain("never occurred: fault lose, ");
});

test("a run depends on its seed alone", async () => {
  const runs = await Promise.all([1, 2].map(() => sim("--seed", "37", "--json")));
  expect(runs[0]?.code).toBe(0);
  expect(runs[0]?.lines).toEqual(runs[1]?.lines);
});

test("the output of a violation ends with its seed and rule, after the shrunk actions", async () => {
  const bug = "the last decision wins";
  const { seed, steps } = readKnownSeeds().bugs[bug] ?? { seed: 0, steps: 0 };
  const { code, lines } = await sim("--bug", bug, "--seed", String(seed), "--steps", String(steps));
  expect(code).toBe(1);
  expect(lines.at(-1)).toMatch(RegExp(`^seed ${seed} violates I\\d+: `));
  const shrunk = /^seed \d+, (\d+) of (\d+) actions, /.exec(
    lines.find((line) => line.includes(" actions, ")) ?? "",
  );
  expect(Number(shrunk?.[1])).toBeLessThan(Number(shrunk?.[2]) / 2);
});

test("--bug and --seeds search the seed that finds a bug", async () => {
  const bug = "the last decision wins";
  const { seed, steps } = readKnownSeeds().bugs[bug] ?? { seed: 0, steps: 0 };
  const range = ["--from", String(seed), "--seeds", "1", "--steps", String(steps)];
  const { code, lines } = await sim("--bug", bug, ...range);
  expect(code).toBe(0);
  expect(lines.at(-1)).toMatch(RegExp(`^found by seed ${seed} as I\\d+: ${bug}$`));
});

test("invalid options are refused", async () => {
  expect(await sim("--bug", "no such bug", "--seeds", "1")).toMatchObject({ code: 2 });
  expect(await sim("--seed", "abc")).toMatchObject({
    code: 2,
    lines: ["--seed must be a whole number of at least 0"],
  });
});
