/**
 * Generates `src/wire/generated` from `proto/`. With `--check`, only checks that it is up to date.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const generated = join(root, "src/wire/generated");

const generate = (...options: string[]): void =>
  void execFileSync("buf", ["generate", ...options], { cwd: root, stdio: "inherit" });

/** The generated files of a folder, with their contents. */
function filesOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.\w+$/.test(name),
  );
  return new Map(names.toSorted().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

function isUpToDate(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-proto-"));
  try {
    generate("--output", folder);
    const made = filesOf(join(folder, "src/wire/generated"));
    const found = filesOf(generated);
    return made.size === found.size && [...made].every(([name, text]) => found.get(name) === text);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (!process.argv.includes("--check")) generate();
else if (!isUpToDate()) {
  process.stderr.write("src/wire/generated differs from proto/: run `npm run generate:proto`.\n");
  process.exitCode = 1;
}
