import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { bugs } from "./bugs.ts";

const main = new URL("./main.ts", import.meta.url).pathname;

/** The simulator as `npm run sim` starts it: a process of its own, so that nothing of the test runner is in it. */
function sim(...options: string[]): Promise<{ code: number | null; lines: string[] }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...options], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (data: Buffer) => (out += data.toString()));
    child.once("close", (code) => resolve({ code, lines: out.trim().split("\n") }));
  });
}

interface Summary {
  runs: number;
  steps: number;
  missing: string[];
}

const summaryOf = (lines: readonly string[]): Summary => JSON.parse(lines.at(-2) ?? "") as Summary;

test(
  "a thousand seeds of 500 events violate nothing, and meet every fault, activity, invariant and rule",
  { timeout: 900_000 },
  async () => {
    const { code, lines } = await sim(
      "--from",
      "1",
      "--seeds",
      "1000",
      "--steps",
      "500",
      "--coverage",
      "--json",
    );
    expect(lines.at(-1)).toBe("nothing violated in 1000 runs");
    expect(code).toBe(0);
    const { runs, steps, missing } = summaryOf(lines);
    expect(missing).toEqual([]);
    expect(runs).toBe(1_000);
    expect(steps).toBeGreaterThanOrEqual(500_000);
  },
);

test("coverage that is not reached fails, and says what was never met", async () => {
  const { code, lines } = await sim("--from", "1", "--seeds", "1", "--steps", "1", "--coverage");
  expect(code).toBe(1);
  expect(lines.at(-1)).toContain("never met: fault lose, ");
});

test("a seed is all that a run depends on", async () => {
  const runs = await Promise.all([1, 2].map(() => sim("--seed", "37", "--steps", "2000", "--json")));
  expect(runs[0]?.code).toBe(0);
  expect(runs[0]?.lines).toEqual(runs[1]?.lines);
});

describe("every planted bug is found within 200 seeds", () => {
  test("there are enough of them", () => expect(Object.keys(bugs).length).toBeGreaterThanOrEqual(12));

  test.for(Object.entries(bugs).map(([name, { breaks }]) => ({ name, breaks })))(
    "$breaks: $name",
    { timeout: 300_000 },
    async ({ name }) => {
      const { code, lines } = await sim("--bug", name, "--seeds", "200", "--steps", "500");
      expect(lines.at(-1)).toMatch(/^found by seed \d+ as I\d+: /);
      expect(code).toBe(0);
    },
  );
});

test("a violation ends with its seed and rule, after the few actions that it takes", async () => {
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

describe("what was found once", () => {
  const folder = new URL("./regressions/", import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const kept = files.map((name) => ({
    name,
    ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as { bug: string; rule: string }),
  }));

  test("stays mended", async () => {
    const { code, lines } = await sim("--regressions");
    expect(lines.at(-1)).toBe(`${files.length} regressions, nothing violated`);
    expect(code).toBe(0);
  });

  test.for(kept)("is found again with its bug: $name", async ({ bug }) => {
    const { code, lines } = await sim("--regressions", "--bug", bug);
    expect(lines.at(-1)).toBe(
      `${kept.filter((one) => one.bug === bug).length} regressions, found again: ${bug}`,
    );
    expect(code).toBe(0);
  });
});

test("options that make no sense are refused", async () => {
  expect(await sim("--bug", "no such bug", "--seeds", "1")).toMatchObject({ code: 2 });
  expect(await sim("--seed", "abc")).toMatchObject({
    code: 2,
    lines: ["--seed must be a whole number from 0 on"],
  });
});
