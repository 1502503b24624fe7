import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe", maxBuffer: 2 ** 28 }).trim();

/** The folders and files whose contents can affect a measurement. */
const MEASURED = ["src", "scripts", "bench", "package.json"];

/**
 * Identifies the measured code, because results of different code must not be mixed. Uncommitted changes are
 * part of the id.
 */
export function codeVersion(): string {
  try {
    const commit = git("rev-parse", "--short", "HEAD");
    const changes = git("diff", "HEAD", "--binary", "--", ...MEASURED);
    const added = git("ls-files", "--others", "--exclude-standard", "--", ...MEASURED).split("\n");
    const contents = added.filter(Boolean).map((path) => `${path} ${git("hash-object", path)}`);
    if (changes === "" && contents.length === 0) return commit;
    const hash = createHash("sha256")
      .update([changes, ...contents].join("\n"))
      .digest("hex");
    return `${commit}-changed-${hash.slice(0, 8)}`;
  } catch {
    return `unknown-${process.pid}`;
  }
}
