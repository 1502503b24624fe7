/** Python with the PostgreSQL driver of the example `examples/python-cell`. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

let found: string | undefined;

const hasDriver = (python: string): boolean =>
  spawnSync(python, ["-c", "import psycopg"], { stdio: "ignore" }).status === 0;

/**
 * Returns the path of a Python that has psycopg 3. Only Debian's own sees the packages of Debian. While there
 * is none, each call looks again, because `npm run setup` installs it.
 */
export function findPython(): string | undefined {
  if (found !== undefined) return found;
  const folders = ["/usr/bin", ...(process.env["PATH"] ?? "").split(":")];
  const programs = folders.map((folder) => join(folder, "python3")).filter((path) => existsSync(path));
  found = programs.find(hasDriver);
  return found;
}

/** @throws an error that says how to install it, if it is missing */
export function requirePython(): string {
  const python = findPython();
  if (python === undefined)
    throw new Error("Python with psycopg 3 is not installed; install it with npm run setup");
  return python;
}
