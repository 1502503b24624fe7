/**
 * `npm run check:width`: fails if a source line is wider than the formatter's width. The formatter wraps
 * code, but not strings and tables.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";

const root = join(import.meta.dirname, "..");

interface Format {
  printWidth: number;
  /** Generated files and data, which may have wide lines. */
  ignorePatterns: string[];
}

const { printWidth, ignorePatterns } = JSON.parse(
  readFileSync(join(root, ".oxfmtrc.json"), "utf8"),
) as Format;

const SOURCES = /\.(ts|mjs|js|css|md|py|sh|pml|proto|yml|toml)$|^\.ci\/run$/;

/** It cannot be broken. */
const ONE_IMPORT = /^(import|export) .* from "[^"]+";$/;

const ignored = ignorePatterns.map((pattern) => pattern.replace(/^\//, ""));
const isIgnored = (file: string): boolean =>
  ignored.some((pattern) => file === pattern || file.startsWith(`${pattern}/`) || matchesGlob(file, pattern));

const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n");
const wide = files
  .filter((file) => SOURCES.test(file) && !isIgnored(file))
  .flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        [...line].length > printWidth && !ONE_IMPORT.test(line) ? [`${file}:${index + 1}`] : [],
      ),
  );
for (const place of wide) process.stdout.write(`${place} is wider than ${printWidth} columns\n`);
process.exitCode = wide.length === 0 ? 0 : 1;
