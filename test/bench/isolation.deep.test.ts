/** Tests that the isolation benchmark works, and that its ratios are those of its rounds. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const PROGRAM = join(import.meta.dirname, "../../bench/isolation/main.ts");
const run = (...argv: string[]) => spawnSync(process.execPath, [PROGRAM, ...argv], { encoding: "utf8" });

test.each(["readers", "documents", "pipelines"])(
  "the %s of a small state are answered, and the other cell has no errors",
  (load) => {
    const { status, stdout, stderr } = run("--small", "--load", load);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/\n[1-9]\d* calls of the load, 0 errors of the other cell/);
  },
);

test.each(["batches", "long-lookups", "lookups", "single-lookups"])(
  "both servers serve the load %s",
  (load) => {
    const { status, stdout, stderr } = run("--small", "--load", load);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout.match(/\n[1-9]\d* calls of the load, 0 errors of the other cell/g)).toHaveLength(2);
  },
);

test("a wrong option is refused with an error that names it", () => {
  for (const [option, value] of [
    ["--load", "writers"],
    ["--claims", "many"],
    ["--server", "postgres"],
  ] as const) {
    const { status, stderr } = run(option, value);
    expect(status).toBe(2);
    expect(stderr).toContain(`${option} takes `);
  }
});
