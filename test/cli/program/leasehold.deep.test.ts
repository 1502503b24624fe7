/** The program as npx starts it in this repository. leasehold.test.ts starts it without npx. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const clean = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: "/nonexistent" };

test("npx leasehold runs it", () => {
  const { status, stdout } = spawnSync("npx", ["--offline", "leasehold", "--version"], {
    cwd: root,
    encoding: "utf8",
    env: clean,
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});
