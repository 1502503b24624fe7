import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const INSTALL_MS = 10 * 60_000;

/** Runs an install script where that asks nobody for anything. Whether it helped is for the caller to see. */
export function installWhereAllowed(script: string): void {
  if (!mayInstall()) return;
  try {
    execFileSync(script, { stdio: ["ignore", "inherit", "inherit"], timeout: INSTALL_MS });
  } catch {
    // What it said is above, and what that means for the tests is said by the caller.
  }
}

function mayInstall(): boolean {
  if (process.platform !== "linux" || !existsSync("/usr/bin/apt-get")) return false;
  return process.getuid?.() === 0 || spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0;
}
