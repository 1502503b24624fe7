import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { bugs, rareBugs } from "./bugs.ts";
import { readKnownSeeds } from "./known-seeds.ts";
import { sim } from "./process.ts";

interface Known {
  missing: string[];
  bugsMissed: string[];
}

describe("the known seeds", () => {
  let code: number | null;
  let lines: string[];
  let known: Known;

  beforeAll(async () => {
    ({ code, lines } = await sim("--known", "--json"));
    if (lines.length > 1) known = JSON.parse(lines.at(-2) ?? "") as Known;
    // Beside other files, some 300 runs take minutes.
  }, 900_000);

  test("case 1: violate nothing and cover every fault, activity, invariant and rule", () => {
    // A slow run prints how far it is.
    const result = lines.find((line) => !/^\d+ runs, \d+ events/.test(line));
    expect(result).toMatch(/^nothing violated in \d+ runs; everything occurred$/);
    expect(known.missing).toEqual([]);
    expect(code).toBe(0);
  });

  const common = Object.entries(bugs).filter(([name]) => !rareBugs.has(name));

  test("each planted bug that is not rare has a known seed", () => {
    expect(common.length).toBeGreaterThanOrEqual(240);
    expect(Object.keys(readKnownSeeds().bugs).toSorted()).toEqual(common.map(([name]) => name).toSorted());
    expect([...rareBugs].filter((name) => !(name in bugs))).toEqual([]);
  });

  test.for(common.map(([name, { breaks }]) => ({ name, breaks })))(
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
  const files = readdirSync(new URL("./regressions/", import.meta.url)).filter((name) =>
    name.endsWith(".json"),
  );
  let code: number | null;
  let lines: string[];

  beforeAll(async () => {
    ({ code, lines } = await sim("--regressions"));
  }, 300_000);

  test("are all run", () => {
    expect(lines).toHaveLength(files.length);
    expect(code).toBe(0);
  });

  test.for(files)("pass without the planted bug, and are found again with it: %s", (file) =>
    expect(lines).toContainEqual(
      expect.stringMatching(
        RegExp(`^${RegExp.escape(file)}: (violates I\\d+ with its bug alone|violates nothing)$`),
      ),
    ),
  );
});
