/** `npm run check:capabilities`: the kernel without each capability. `--help` says more. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as kinds from "../src/coordinator/capabilities/index.ts";
import type { Capability } from "../src/coordinator/kernel/capability.ts";
import { partOf, slice } from "../test/support/slice.ts";

const HELP = `npm run check:capabilities -- [options] [NAME ...]

Takes out each capability in turn, or those that are named, with those that need it. Then compiles the
kernel and the list of capabilities, and runs the kernel's tests.

  --changed   only some of those whose folder the last commit has changed, and one more; the commit
              decides which
`;

const capabilities: readonly Capability[] = kinds.capabilities;
const root = join(import.meta.dirname, "..");
const FOLDER = "src/coordinator/capabilities";
const LIST = `${FOLDER}/index.ts`;
const KERNEL = "src/coordinator/kernel/";
const TESTS = "test/coordinator/kernel/";
/** The most changed capabilities that CI takes out. Each takes half a minute. */
const MOST_CHANGED = 3;
const TEST_FOLDERS = [TESTS, "test/suites/protocol", "test/support"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { changed: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
});

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const git = (...args: string[]): string[] =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((line) => line !== "");

/** A capability, and all that need it. */
function withDependents(name: string): string[] {
  const removed = [name];
  for (const each of removed)
    for (const { name: dependent, needs = [] } of capabilities)
      if (needs.includes(each) && !removed.includes(dependent)) removed.push(dependent);
  return removed;
}

/** A shallow clone does not have the commit before the last one. */
function changedFiles(): string[] {
  try {
    return git("diff", "--name-only", "HEAD~1");
  } catch {
    return [];
  }
}

function chosen(names: readonly string[]): readonly string[] {
  const files = changedFiles();
  const changed = names.filter((name) => files.some((file) => file.startsWith(`${FOLDER}/${name}/`)));
  const decided = partOf(slice, names, names.length);
  return [...new Set([...decided, ...partOf(slice, changed, Math.ceil(changed.length / MOST_CHANGED))])];
}

/** The list of capabilities without some of them. */
function listWithout(text: string, removed: readonly string[]): string {
  let list = text;
  for (const name of removed) {
    const imported = new RegExp(String.raw`^import \{ (\w+) \} from "\./${name}/index\.ts";\n`, "m");
    const variable = imported.exec(list)?.[1];
    if (variable === undefined) throw new Error(`${LIST} does not import ${name} on a line of its own`);
    list = list.replace(imported, "");
    list = list.replace(/(?<=capabilities = \[)[^\]]*/, (all) =>
      all.replace(new RegExp(String.raw`\b${variable}\b,?\s*`), ""),
    );
  }
  return list;
}

/** Copies what the kernel's tests need. */
function copyWithout(folder: string, removed: readonly string[]): void {
  const copied = ["package.json", "tsconfig.base.json", "openapi.json", "src", ...TEST_FOLDERS];
  for (const file of git("ls-files", ...copied))
    if (!removed.some((name) => file.startsWith(`${FOLDER}/${name}/`)))
      cpSync(join(root, file), join(folder, file));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const list = join(folder, LIST);
  writeFileSync(list, listWithout(readFileSync(list, "utf8"), removed));
  const options = {
    extends: "./tsconfig.base.json",
    compilerOptions: { lib: ["esnext"], types: ["node"] },
    include: [KERNEL, LIST, TESTS],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  const test = { include: [`${TESTS}**/*.test.ts`], isolate: false, testTimeout: 300_000 };
  writeFileSync(join(folder, "vitest.config.ts"), `export default ${JSON.stringify({ test })};\n`);
}

/** Returns what the compiler or the tests have found. */
function faultWithout(removed: readonly string[]): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-capabilities-"));
  try {
    copyWithout(folder, removed);
    for (const [program, ...args] of [["tsc"], ["vitest", "run", "--reporter", "dot"]] as const) {
      const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
      if (status !== 0) return `${stdout}${stderr}`;
    }
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function main(): void {
  const names = capabilities.map(({ name }) => name);
  const unknown = positionals.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`there is no capability ${unknown}; there are ${names.join(", ")}`);
  const named = positionals.length > 0 ? positionals : names;
  for (const name of values.changed ? chosen(named) : named) {
    const removed = withDependents(name);
    const fault = faultWithout(removed);
    print(`without ${removed.join(", ")}: ${fault === undefined ? "ok" : "failed"}`);
    if (fault === undefined) continue;
    print(fault);
    process.exitCode = 1;
  }
}

if (values.help) print(HELP.trimEnd());
else main();
