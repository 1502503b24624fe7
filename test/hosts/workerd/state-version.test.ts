/** Every program that opens a state folder refuses a state of another version, before it does anything. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

const PROGRAMS: readonly (readonly [string, ...string[]])[] = [
  ["src/hosts/workerd/start.ts"],
  ["scripts/standalone.mjs"],
  ["scripts/standalone.mjs", "--backup", "/nowhere/backup"],
  ["src/hosts/workerd/copy-state.ts", "--to", "/nowhere/copy"],
  ["scripts/leasehold.mjs", "dev", "--no-save"],
];

test.each(PROGRAMS.map((command) => [command.join(" "), command] as const))("%s", (_, command) => {
  const [program, ...args] = command;
  const folder = mkdtempSync(join(tmpdir(), "leasehold-version-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "state.json"), '{"version":1,"shards":"1"}\n');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: root,
    env: { ...process.env, LEASEHOLD_STATE: folder },
    encoding: "utf8",
  });
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toContain(
    `${folder} has a state of a version before 0.2.0 (1), which this one cannot take over: with that `,
  );
  expect(readdirSync(folder).filter((name) => !/^(lock\.sqlite|owner)/.test(name))).toEqual(["state.json"]);
});
