import { execFileSync, spawnSync } from "node:child_process";
import { chownSync } from "node:fs";

/** No database server runs as root: under root it gets the user that its package has made. */
const isRoot = process.getuid?.() === 0;

/** The whole command line. `lastSignal` is what the process gets when the one that started it ends, however that ends. */
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

/** Runs it to its end. Throws with what it said when that is not a success. */
export function runAsUser(user: string, command: readonly [string, ...string[]], cwd: string): void {
  const [program, ...args] = asUser(user, command);
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command[0]} failed: ${stdout}${stderr}`.trim());
}
