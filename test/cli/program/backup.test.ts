/** `leasehold backup` as a process, against a server with files. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

const program = join(import.meta.dirname, "../../../scripts/leasehold.mjs");

test("it writes all claims of a running server to a private file, which verifies", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-backup-test-"));
  const env = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: folder };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [program, ...args], { cwd: folder, env, encoding: "utf8" });
  const dev = ["dev", "--jsonl", "--temporary", "--seed", "500", "--port", String(await freePort())];
  const child = spawn(process.execPath, [program, ...dev], { cwd: folder, env, stdio: "pipe" });
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  await once(createInterface(child.stdout), "line");

  const { status, stdout, stderr } = run("backup", "names.jsonl", "--json");
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining("The file has names") });
  const { claims, comparison } = JSON.parse(stdout) as {
    claims: { count: number }[];
    comparison: { verified: number };
  };
  expect(claims.reduce((sum, { count }) => sum + count, 0)).toBe(500);
  expect(comparison).toMatchObject({ changed: 0, held: 0, different: [], is_outdated: false });
  expect(statSync(join(folder, "names.jsonl")).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).not.toContain("names.jsonl.partial");

  const refused = run("restore", "names.jsonl", "--yes", "--reason", "a test");
  expect(refused).toMatchObject({ status: 3, stderr: expect.stringContaining("the deployment is in use") });

  const stopped = once(child, "exit");
  child.kill("SIGINT");
  await stopped;
  expect(run("backup", "verify", "names.jsonl").status).toBe(0);
});
