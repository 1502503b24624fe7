import { readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { bugs } from "./bugs.ts";
import { bugsOfSlice, readKnownSeeds } from "./known-seeds.ts";
import { sim } from "./process.ts";

const MOST_UNFOUND = 9;

interface Known {
  missing: string[];
  bugsMissed: string[];
}

describe("the known seeds", () => {
  let code: number | null;
  let lines: string[];
  let known: Known;

  beforeAll(async () => {
    ({ code, lines } = await sim("--known", "--slice", "--json"));
    if (lines.length > 1) known = JSON.parse(lines.at(-2) ?? "") as Known;
    // Beside other files, some 100 runs take minutes.
  }, 900_000);

  test("case 1: violate nothing and cover every fault, activity, invariant and rule", () => {
    // A slow run prints how far it is.
    const result = lines.find((line) => !/^\d+ runs, \d+ events/.test(line));
    expect(result).toMatch(/^nothing violated in \d+ runs; everything occurred$/);
    expect(known.missing).toEqual([]);
    expect(code).toBe(0);
  });

  test("there are at least 12 planted bugs", () =>
    expect(Object.keys(bugs).length).toBeGreaterThanOrEqual(12));

  test("every planted bug has a known seed, or is one of the few that are searched for", () => {
    const { bugs: seeds, unfound } = readKnownSeeds();
    expect([...Object.keys(seeds), ...unfound].toSorted()).toEqual(Object.keys(bugs).toSorted());
    expect(unfound.length).toBeLessThanOrEqual(MOST_UNFOUND);
  });

  test.for(bugsOfSlice(readKnownSeeds()).map((name) => ({ name, breaks: bugs[name]?.breaks })))(
    "find the bug that breaks $breaks: $name",
    ({ name }) => {
      expect(lines.filter((line) => line.endsWith(`: ${name}`))).toEqual([
        expect.stringMatching(/^found by seed \d+ as I\d+: /),
      ]);
      expect(known.bugsMissed).not.toContain(name);
    },
  );
});

describe("the kept regressions", () => {
  const folder = new URL("./regressions/", import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const kept = files.map((name) => ({
    name,
    ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as { bug: string; rule: string }),
  }));

  test("pass without a planted bug", async () => {
    const { code, lines } = await sim("--regressions");
    expect(lines.at(-1)).toBe(`${files.length} regressions, nothing violated`);
    expect(code).toBe(0);
  });

  test.for(kept)("are found again with the planted bug: $name", async ({ bug }) => {
    const { code, lines } = await sim("--regressions", "--bug", bug);
    expect(lines.at(-1)).toBe(
      `${kept.filter((one) => one.bug === bug).length} regressions, found again: ${bug}`,
    );
    expect(code).toBe(0);
  });
});
