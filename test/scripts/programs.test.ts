/** The programs that `npm run` has: what they do with options that make no sense. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test.each([
  ["crash", ["--bogus"], "Unknown option '--bogus'"],
  ["crash", ["--rounds", "x"], '--rounds must be a whole number, not "x"'],
  ["crash", ["--round", "0"], '--round must be a whole number from 1, not "0"'],
  ["crash", ["--only", "x"], '--only must be failpoints or random, not "x"'],
  ["soak", ["--minutes", "0"], '--minutes must be a number from 1, not "0"'],
  ["soak", ["extra"], "Unexpected argument 'extra'"],
  ["model", ["--bogus"], "Unknown option '--bogus'"],
  ["model", ["--only"], "Option '--only <value>' argument missing"],
  ["model", ["--only", "x"], "there is no run x"],
  ["model", ["--only", "a", "--trail", "b"], "--only and --trail exclude each other"],
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
