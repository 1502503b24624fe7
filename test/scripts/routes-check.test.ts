/** Tests `npm run routes:check` as a process. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { slowExpressions } from "../../scripts/slow-expressions.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "leasehold-routes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/routes-check.ts", ...args], {
    cwd: root,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const header = (regexValue: string, more: object = {}): object => ({
  id: "token",
  match: { type: "header", name: "token", regexValue },
  action: "classify",
  classify: { type: "CELL_ID", value: "${cell}" },
  ...more,
});
const last = { id: "last", action: "first_cell" };

describe("npm run routes:check", () => {
  test("is silent and 0 for good rules", () => {
    const file = fileOf("good.json", [header("^(?<cell>\\d+)-"), last]);
    expect(run(file)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(run("--json", file)).toEqual({ status: 0, stdout: "[]\n", stderr: "" });
  });

  test("finds nothing wrong with the rules of the router Worker", () => {
    expect(run("router/rules.json")).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  test("case 17: refuses unreachable rules and expressions that backtrack, with one line for each", () => {
    const slow = "^(?<cell>(\\w+)+)$";
    const file = fileOf("bad.json", [header(slow), { id: "all", action: "proxy" }, last]);
    const { status, stdout } = run(file);
    expect(status).toBe(1);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toEqual([
      expect.stringContaining(
        `${file}: rules[0].match.regexValue (token): backtracking: can hold up the router: it`,
      ),
      expect.stringContaining(
        `${file}: rules[2] (last): unreachable: is never reached, because \`rules[1] (all)\``,
      ),
    ]);
  });

  test("--json prints the findings of all files", () => {
    const one = fileOf("one.json", [header("^(?<cell>a)", { action: "redirect" }), last]);
    const two = fileOf("two.json", [header("^(?<cell>a)")]);
    const { status, stdout } = run("--json", one, two);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject([
      { file: one, rule: "token", field: "rules[0].action", kind: "invalid" },
      { file: two, rule: null, field: "rules", kind: "no_fallback" },
    ]);
  });

  test("compares bucket types with those of a file, or of GitLab", () => {
    const rule = {
      match: { type: "path", pattern: "/:shop/*" },
      action: "classify",
      classify: { type: "SHOPS", value: "${shop}" },
    };
    const file = fileOf("shops.json", [rule, last]);
    expect(run(file).stdout).toContain("rules[0].classify.type: undeclared_type: names SHOPS");
    const types = fileOf("types.json", {
      bucket_types: { SHOPS: { number: 1 } },
      subject_types: { SHOP: { number: 1 } },
      source_types: { SHOPS: { number: 1 } },
    });
    expect(run("--types", types, file)).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  test.each([
    ["no file", [], "give at least one file of rules"],
    ["a missing file", ["missing.json"], "no such file"],
    ["an unknown option", ["--jsn", "x"], "Unknown option '--jsn'"],
    ["text that is not JSON", [fileOf("text.json", "[}")], "is not JSON"],
    ["a field given twice", [fileOf("twice.json", '[{"action":"proxy","action":"cell"}]')], "twice"],
    [
      "a large file",
      [fileOf("large.json", `[]${" ".repeat(4 * 1024 * 1024)}`)],
      "is larger than 4194304 bytes",
    ],
  ])("%s: says so, and 2", (_, args, message) => {
    const { status, stdout, stderr } = run(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain("--help shows the usage");
  });
});

describe("the analysis of regular expressions", () => {
  const slowness = slowExpressions();

  test.each([
    "^glrtr?-(?<payload>[0-9A-Za-z_-]{27,300})\\.01\\.(?<payload_length>[0-9a-z]{2})[0-9a-z]{7}$",
    "^(?<cell_name>cell-\\d+)-.*",
    "^glcbt-[\\w-]+\\.(?<payload>[\\w-]+)\\.[\\w-]+$",
    "_gitlab_session(_[0-9a-f]+)?",
    "^(?<a>[^*+]*)$",
  ])("passes %s", (source) => {
    expect(slowness(source)).toBeNull();
  });

  test.each([
    ["^(a+)+$", "exponential"],
    ["^(a|a)*$", "exponential"],
    ["a.*a.*b", "polynomial"],
    ["(?<x>\\d+)-foo", "polynomial"],
    ["^(?:a?){30}a{30}$", "by a count"],
    ["^((?<x>a|b)c?){30}b", "by a count"],
  ])("refuses %s", (source, reason) => {
    expect(slowness(source)).toContain(reason);
  });
});
