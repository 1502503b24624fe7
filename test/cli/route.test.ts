/** `leasehold route`: the checker of rules, and what they say about a URL. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { slowExpressions } from "../../src/cli/route/slow-expressions.ts";
import { claim, startCommandLine, type Ran } from "./command-line.ts";

const rulesOfTheWorker = join(import.meta.dirname, "../../router/rules.json");
const folder = mkdtempSync(join(tmpdir(), "leasehold-routes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

async function check(...args: string[]): Promise<Pick<Ran, "code" | "out" | "err">> {
  const line = await startCommandLine();
  const { code, out, err } = await line.run(["route", "check", ...args], {
    env: { LEASEHOLD_URL: undefined, LEASEHOLD_KEY: undefined },
  });
  expect(line.sent).toEqual([]);
  return { code, out, err };
}

const header = (regexValue: string, more: object = {}): object => ({
  id: "token",
  match: { type: "header", name: "token", regexValue },
  action: "classify",
  classify: { type: "CELL_ID", value: "${cell}" },
  ...more,
});
const last = { id: "last", action: "first_cell" };

describe("check", () => {
  test("is silent and 0 for good rules", async () => {
    const file = fileOf("good.json", [header("^(?<cell>\\d+)-"), last]);
    expect(await check(file)).toEqual({ code: 0, out: "", err: "" });
    expect(JSON.parse((await check("--json", file)).out)).toEqual({ findings: [], next_steps: [] });
  });

  test("finds nothing wrong with the rules of the router Worker", async () => {
    expect(await check(rulesOfTheWorker)).toEqual({ code: 0, out: "", err: "" });
  });

  test("case 17: refuses unreachable rules and slow expressions, with one line for each", async () => {
    const slow = "^(?<cell>(\\w+)+)$";
    const file = fileOf("bad.json", [header(slow), { id: "all", action: "proxy" }, last]);
    const { code, out } = await check(file);
    expect(code).toBe(1);
    const lines = out.trimEnd().split("\n");
    expect(lines).toEqual([
      expect.stringContaining(
        `${file}: rules[0].match.regexValue (token): backtracking: can hold up the router: it`,
      ),
      expect.stringContaining(
        `${file}: rules[2] (last): unreachable: is never reached, because \`rules[1] (all)\``,
      ),
    ]);
  });

  test("--json prints the findings of all files", async () => {
    const one = fileOf("one.json", [header("^(?<cell>a)", { action: "redirect" }), last]);
    const two = fileOf("two.json", [header("^(?<cell>a)")]);
    const { code, out } = await check("--json", one, two);
    expect(code).toBe(1);
    expect((JSON.parse(out) as { findings: object[] }).findings).toMatchObject([
      { file: one, rule: "token", field: "rules[0].action", kind: "invalid" },
      { file: two, rule: null, field: "rules", kind: "no_fallback" },
    ]);
  });

  test("compares bucket types with those of a file, or of GitLab", async () => {
    const rule = {
      match: { type: "path", pattern: "/:shop/*" },
      action: "classify",
      classify: { type: "SHOPS", value: "${shop}" },
    };
    const file = fileOf("shops.json", [rule, last]);
    expect((await check(file)).out).toContain("rules[0].classify.type: undeclared_type: names SHOPS");
    const types = fileOf("types.json", {
      bucket_types: { SHOPS: { number: 1 } },
      subject_types: { SHOP: { number: 1 } },
      source_types: { SHOPS: { number: 1 } },
    });
    expect(await check("--types", types, file)).toEqual({ code: 0, out: "", err: "" });
  });

  test.each([
    ["no file", [], "FILES is required"],
    ["a missing file", ["missing.json"], "no such file"],
    ["an unknown option", ["--jso", "x"], "Did you mean --json?"],
    ["text that is not JSON", [fileOf("text.json", "[}")], "is not JSON"],
    ["a field given twice", [fileOf("twice.json", '[{"action":"proxy","action":"cell"}]')], "twice"],
    [
      "a large file",
      [fileOf("large.json", `[]${" ".repeat(4 * 1024 * 1024)}`)],
      "is larger than 4194304 bytes",
    ],
  ])("%s: says so, and 2", async (_, args, message) => {
    const { code, out, err } = await check(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
  });
});

describe("test", () => {
  const rules = fileOf("try.json", [
    {
      id: "users",
      match: { type: "path", pattern: "/:name" },
      action: "classify",
      classify: { type: "USERNAMES", value: "${name}" },
    },
    { id: "start", match: { type: "path", pattern: "/" }, action: "first_cell" },
    { id: "other", action: "not_found" },
  ]);
  const page = (path: string): string => `https://app.example${path}`;

  test("shows the rule, the names and the cell for each URL, as a router key sees them", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "ada");
    const env = { LEASEHOLD_KEY: line.coordinator.keys.router };
    const args = ["route", "test", page("/ADA"), page("/"), page("/nobody"), page("/a/b"), "--rules", rules];
    const { urls } = await line.json(args, { env });
    expect(urls).toMatchObject([
      { rule: "users", names: [{ type: "USERNAMES", value: "ADA" }], result: "cell", cell: "2" },
      { rule: "start", action: "first_cell", cell: "1", detail: "the fallback" },
      { rule: "users", result: "none", cell: null },
      { rule: "other", action: "not_found", result: "none" },
    ]);
    expect((await line.run(args, { env })).code).toBe(4);
    const found = ["route", "test", page("/ada"), "--rules", rules];
    expect((await line.run(found, { env })).code).toBe(0);
  });

  test("an outage is 6, and never another cell", async () => {
    const line = await startCommandLine();
    await line.coordinator.close();
    const { code, out } = await line.run(["route", "test", page("/ada"), "--rules", rules, "--json"]);
    expect(code).toBe(6);
    expect(JSON.parse(out)).toMatchObject({ urls: [{ result: "unavailable", cell: null }] });
  });

  test("--offline sends nothing, and headers count", async () => {
    const line = await startCommandLine();
    const file = fileOf("header.json", [header("^(?<cell>\\d+)-"), last]);
    const args = ["route", "test", page("/"), "--offline", "--rules", file];
    expect(await line.json([...args, "--header", "token: 7-x"])).toMatchObject({
      urls: [{ rule: "token", action: "cell" }],
    });
    expect(await line.json(args)).toMatchObject({ urls: [{ rule: "last" }] });
    expect((await line.run([...args, "--header", "token"])).code).toBe(2);
    expect((await line.run(["route", "test", "/ada", "--offline", "--rules", file])).code).toBe(2);
    expect(line.sent).toEqual([]);
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
