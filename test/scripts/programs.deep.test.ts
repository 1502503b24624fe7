/** Tests that the programs of `npm run` refuse invalid options. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test.each([
  ["crash", ["--bogus"], "Unknown option '--bogus'"],
  ["crash", ["--rounds", "x"], '--rounds must be a whole number, not "x"'],
  ["crash", ["--round", "0"], '--round must be a whole number from 1, not "0"'],
  ["crash", ["--only", "x"], '--only must be failpoints or random, not "x"'],
  ["soak", ["--minutes", "0"], '--minutes must be a number of at least 1, not "0"'],
  ["soak", ["--host", "here"], '--host must be start or standalone, not "here"'],
  ["crash", ["--host", "here"], '--host must be start or standalone, not "here"'],
  ["routing", ["--rounds", "0"], '--rounds must be a whole number from 1, not "0"'],
  ["routing", ["--only", "x"], '--only must be outage or churn, not "x"'],
  ["routing", ["--failure", "x"], '--failure must be kill or freeze, not "x"'],
  ["upgrade", ["--host", "x"], "--host must be mixed or standalone"],
  [
    "upgrade",
    ["--bug", "x"],
    "--bug must be one of early-exchanges, early-answers, early-step, early-tokens",
  ],
  ["soak", ["extra"], "Unexpected argument 'extra'"],
  ["model", ["--bogus"], "Unknown option '--bogus'"],
  ["model", ["--only"], "Option '--only <value>' argument missing"],
  ["model", ["--only", "x"], "unknown run x"],
  ["model", ["--only", "a", "--trail", "b"], "--only and --trail exclude each other"],
  ["model", ["--quick", "--full"], "--quick and --full exclude each other"],
])("npm run %s -- %j: one sentence, the usage, and 2", (name, args, sentence) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [`test/rigs/${name}/main.ts`, ...args], {
    cwd: root,
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(sentence);
  expect(stderr).toContain(`\n\nnpm run ${name} -- [options]\n\n`);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test.each([
  ["setup", "test/support/setup/main.ts", "--bogus"],
  ["test:deep", "test/rigs/deep/main.ts", "--bogus"],
])("npm run %s refuses an unknown option", (name, main, option) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [main, option], {
    cwd: root,
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(`Unknown option '${option}'`);
  expect(stderr).toContain(`npm run ${name} -- [options]`);
});

test("npm run test:deep refuses an unknown step, and lists the known steps", () => {
  const { status, stderr } = spawnSync(process.execPath, ["test/rigs/deep/main.ts", "--only", "x"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(status).toBe(2);
  expect(stderr).toContain("--only must name a step: sim-seeds, sim-bugs, ");
});

test("npm run setup --dry-run lists missing programs, the commands that need them, and the packages", () => {
  // Setup looks for Spin and the C compiler in PATH only.
  const { status, stdout } = spawnSync(process.execPath, ["test/support/setup/main.ts", "--dry-run"], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: "/nonexistent" },
  });
  expect(status).toBe(0);
  expect(stdout).toContain("setup: Spin is missing; needed by npm run model\n");
  expect(stdout).toMatch(/^setup: would install .*\bspin gcc libc6-dev$/m);
});
