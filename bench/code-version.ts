import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trim();

/**
 * Identifies the measured code, because results of different code must not be mixed. Code with uncommitted
 * changes gets an id that no later run has, so its results are never reused.
 */
export function codeVersion(): string {
  try {
    const isChanged = git("status", "--porcelain", "--", "src", "scripts", "bench", "package.json") !== "";
    return `${git("rev-parse", "--short", "HEAD")}${isChanged ? `-changed-${process.pid}` : ""}`;
  } catch {
    return `unknown-${process.pid}`;
  }
}
