import { execFileSync, spawnSync } from "node:child_process";
import { chownSync } from "node:fs";

/**
 * Database servers refuse to run as root. Under root, they run as the user that their package has created.
 */
const isRoot = process.getuid?.() === 0;

/**
 * Returns the whole command line. `lastSignal` is sent to the process when its parent ends, in whichever way.
 */
export function asUser(
  user: string,
  command: readonly [string, ...string[]],
  lastSignal?: "QUIT" | "KILL",
): [string, ...string[]] {
  const flags = isRoot ? [`--reuid=${user}`, `--regid=${user}`, "--clear-groups"] : [];
  if (lastSignal !== undefined) flags.push("--pdeathsig", lastSignal);
  return flags.length === 0 ? [...command] : ["setpriv", ...flags, ...command];
}

export function giveTo(user: string, folder: string): void {
  if (!isRoot) return;
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Number(execFileSync("id", [flag, user], { encoding: "utf8" })),
  );
  chownSync(folder, uid ?? 0, gid ?? 0);
}

/** Runs the command to its end. Throws an error with its output if it fails. */
export function runAsUser(user: string, command: readonly [string, ...string[]], cwd: string): void {
  const [program, ...args] = asUser(user, command);
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command[0]} failed: ${stdout}${stderr}`.trim());
}
