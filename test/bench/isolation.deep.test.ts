/** Tests that the isolation benchmark works, and that its ratios are those of its rounds. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tableOf } from "../../bench/isolation/table.ts";

const PROGRAM = join(import.meta.dirname, "../../bench/isolation/main.ts");
const run = (...argv: string[]) => spawnSync(process.execPath, [PROGRAM, ...argv], { encoding: "utf8" });

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

test("the readers of a small state are answered, and the other cell has no errors", () => {
  const { status, stdout, stderr } = run("--small", "--load", "readers");
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/\n[1-9]\d* calls of the load, 0 errors of the other cell/);
});

test("a wrong option is refused with an error that names it", () => {
  for (const [option, value] of [
    ["--load", "writers"],
    ["--claims", "many"],
  ] as const) {
    const { status, stderr } = run(option, value);
    expect(status).toBe(2);
    expect(stderr).toContain(`${option} takes `);
  }
});
