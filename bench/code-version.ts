import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trim();

/**
 * Names the code that is measured: results of other code are no results of this one. What is not committed
 * has no name to go on with.
 */
export function codeVersion(): string {
  try {
    const isChanged = git("status", "--porcelain", "--", "src", "scripts", "bench", "package.json") !== "";
    return `${git("rev-parse", "--short", "HEAD")}${isChanged ? `-changed-${process.pid}` : ""}`;
  } catch {
    return `unknown-${process.pid}`;
  }
}
