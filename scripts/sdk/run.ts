import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Runs a program and returns its output. Throws with the output when it fails. */
export function run(program: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}:\n${stdout}${stderr}`);
  return stdout;
}

/** Runs a script of one of the repository's npm packages. */
function runScript(packageName: string, script: string, args: readonly string[], cwd: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
  return run(process.execPath, [join(dirname(manifest), script), ...args], cwd);
}

export const runTsc = (project: string): string =>
  runScript("typescript", "bin/tsc", ["--pretty", "false", "-p", project], project);
