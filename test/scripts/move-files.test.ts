/** Moves files in small repositories of their own. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const script = join(import.meta.dirname, "../../scripts/move-files.ts");

type Files = Record<string, string>;

class Repository {
  readonly #folder = mkdtempSync(join(tmpdir(), "leasehold-move-"));

  constructor(files: Files) {
    onTestFinished(() => rmSync(this.#folder, { recursive: true, force: true }));
    for (const [file, text] of Object.entries(files)) this.write(file, text);
    this.git("init", "--quiet");
    this.git("add", "--all");
    this.git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "test");
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.#folder, encoding: "utf8" });
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
    writeFileSync(join(this.#folder, file), text);
  }

  move(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(process.execPath, [script, ...args], { cwd: this.#folder, encoding: "utf8" });
  }

  /** All tracked files. */
  files(): Files {
    const names = this.git("ls-files").trim().split("\n");
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(this.#folder, name), "utf8")]));
  }

  has(path: string): boolean {
    return existsSync(join(this.#folder, path));
  }
}

test("a folder moves with everything that names it", () => {
  const naming = {
    "src/other.ts": `
      import type { M } from "./old/moved.ts";
      const m = await import("./old/moved.ts?raw");
      declare module "./old/moved.ts" {}
      // As in src/old/moved.ts.`,
    "test/other.test.ts": `
      vi.mock("../src/old/moved.ts");
      const bug = { file: "src/old/moved.ts" };
      const url = new URL(\`../src/old/\${name}\`, import.meta.url);`,
    "docs/page.md": "`src/old/`, [moved](../src/old/moved.ts#here), `old/moved.ts`, [other](../src/other.ts)",
    "package.json": '{ "exports": { "./old": "./src/old/moved.ts" } }',
    "tsconfig.json": '{ "include": ["src/old/"], "exclude": ["!src/old/**/*.test.ts"] }',
  };
  const repository = new Repository({
    ...naming,
    "src/old/beside.ts":
      'const [here, root] = [new URL("./", import.meta.url), new URL("../..", import.meta.url)];',
    "src/old/moved.ts": 'import "../other.ts"; export * from "./beside.ts"; join(import.meta.dirname, "..");',
  });
  expect(repository.move("src/old", "src/new/deep").stdout).toBe(
    "2 files to move, 7 files to change: done\n",
  );
  expect(repository.files()).toEqual({
    ...Object.fromEntries(
      Object.entries(naming).map(([file, text]) => [file, text.replaceAll("old/", "new/deep/")]),
    ),
    "src/new/deep/beside.ts":
      'const [here, root] = [new URL("./", import.meta.url), new URL("../../..", import.meta.url)];',
    "src/new/deep/moved.ts":
      'import "../../other.ts"; export * from "./beside.ts"; join(import.meta.dirname, "../..");',
  });
  expect(repository.has("src/old")).toBe(false);
});

test("other texts stay", () => {
  const text = 'const texts = [".", "..", "./src", "https://example.com/src/b.ts", "x/src/b.ts"];';
  const repository = new Repository({ "src/a.ts": text, "src/b.ts": "" });
  expect(repository.move("src/b.ts", "lib/b.ts", "src/a.ts", "lib/a.ts").status).toBe(0);
  expect(repository.files()).toEqual({ "lib/a.ts": text, "lib/b.ts": "" });
});

test("--table reads pairs, the longest FROM decides, and --with-tests moves tests along", () => {
  const files = ["src/a/x.ts", "src/a/y.ts", "test/a/x.test.ts", "test/a/y.deep.test.ts", "src/z.ts"];
  const repository = new Repository(Object.fromEntries(files.map((file) => [file, file])));
  const table = join(tmpdir(), `leasehold-move-${process.pid}`);
  onTestFinished(() => rmSync(table));
  writeFileSync(table, "src/a/ src/b\nsrc/a/y.ts  src/c/w.ts\n");
  const { status } = repository.move("--table", table, "--with-tests", "src/z.ts", "src/c/z.ts");
  expect(status).toBe(0);
  const moved = ["src/b/x.ts", "src/c/w.ts", "src/c/z.ts", "test/b/x.test.ts", "test/c/w.deep.test.ts"];
  expect(repository.files()).toEqual(Object.fromEntries(moved.map((file) => [file, file])));
});

test("--dry-run shows each change and makes none", () => {
  const repository = new Repository({ "a.ts": "", "b.ts": '\nimport "./a.ts";' });
  expect(repository.move("--dry-run", "a.ts", "c/a.ts").stdout).toBe(
    'b.ts:2\n-import "./a.ts";\n+import "./c/a.ts";\na.ts -> c/a.ts\n1 files to move, 1 files to change\n',
  );
  expect(repository.git("status", "--porcelain")).toBe("");
});

test("patterns that no longer match a moved file are listed", () => {
  const repository = new Repository({
    "src/a/x.ts": "",
    "lint.json": '["src/{a,b}/**", "!**/a/x.ts", "src/a", "src/**", "src/b/*"]',
    "page.md": "`src/a/*.ts`, but `src/a` is where it was\n",
  });
  expect(repository.move("src/a/x.ts", "src/c/x.ts").stdout.split("\n").slice(0, -2)).toEqual([
    "These patterns no longer match a file that was moved:",
    "  lint.json: src/{a,b}/**",
    "  lint.json: **/a/x.ts",
    "  lint.json: src/a",
    "  page.md: src/a/*.ts",
  ]);
});

test.for([
  { args: [], message: "each FROM needs a TO" },
  { args: ["a.ts"], message: "each FROM needs a TO" },
  { args: ["none.ts", "c.ts"], message: "none.ts is no file or folder that Git knows" },
  { args: ["a.ts", "c.ts", "a.ts", "d.ts"], message: "a.ts is to be moved twice" },
  { args: ["a.ts", "b.ts"], message: "a.ts cannot move to b.ts: choose a path" },
  { args: ["a.ts", "c.ts", "b.ts", "c.ts"], message: "b.ts cannot move to c.ts: choose a path" },
])("$args is refused", ({ args, message }) => {
  const files = { "a.ts": "", "b.ts": "" };
  const repository = new Repository(files);
  const { status, stderr } = repository.move(...args);
  expect(stderr).toContain(message);
  expect(status).toBe(1);
  expect(repository.files()).toEqual(files);
});

test("a tree with changes is refused", () => {
  const repository = new Repository({ "a.ts": "" });
  repository.write("b.ts", "");
  const { status, stderr } = repository.move("a.ts", "c.ts");
  expect([status, stderr]).toEqual([1, "commit your changes first\n"]);
  expect(repository.has("a.ts")).toBe(true);
});
