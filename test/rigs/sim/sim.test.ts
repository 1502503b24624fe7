import { expect, onTestFinished, test, vi } from "vitest";
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

/** Makes the simulator run with changed bugs. `bug` is one that changes a single file. */
function changeBugs(statement: string): void {
  const [bugsUrl, bug] = [new URL("./bugs.ts", import.meta.url).href, "the last decision wins"];
  const script = `import { bugs } from "${bugsUrl}"; const bug = bugs["${bug}"].patches[0]; ${statement}`;
  vi.stubEnv("NODE_OPTIONS", `--import=data:text/javascript,${encodeURIComponent(script)}`);
  onTestFinished(() => void vi.unstubAllEnvs());
}

test("--check-bugs accepts the bugs as they are", async () => {
  expect(await sim("--check-bugs")).toEqual({
    code: 0,
    lines: [expect.stringMatching(/^all \d+ bugs can be planted$/)],
  });
});

test.for([
  ["bug.find = 'nothing like this'", /^"the last decision wins" cannot be planted: src\/.*, not 0 times:$/],
  ["bug.find = 'const'", /^"the last decision wins" cannot be planted: src\/.*, not \d+ times:$/],
  ["bug.file = 'src/none.ts'", /^"the last decision wins" cannot be planted: there is no src\/none.ts$/],
  ["bug.put = ` ${bug.find}`", /^"the last decision wins" changes nothing in src\/.*:$/],
  ["bug.put = 'const ('", /^src\/.*\?planted=the last decision wins:\d+:\d+: ERROR: /],
] as const)("--check-bugs fails for %s", async ([statement, message]) => {
  changeBugs(statement);
  const { code, lines } = await sim("--check-bugs");
  expect(lines).toContainEqual(expect.stringMatching(message));
  expect(code).toBe(1);
});

test("invalid options are refused", async () => {
  expect(await sim("--bug", "no such bug", "--seeds", "1")).toMatchObject({ code: 2 });
  expect(await sim("--seed", "abc")).toMatchObject({
    code: 2,
    lines: ["--seed must be a whole number of at least 0"],
  });
});
