import { describe, expect, it } from "vitest";
import { checkRules, type RuleProblem } from "../../../../src/users/router/rules/check.ts";
import { gitlabRules } from "./gitlab-routes.ts";

const last = { id: "last", action: "not_found" };

const path = (id: string, pattern: string, more: object = {}, rest: object = {}): object => ({
  id,
  match: { type: "path", pattern, ...more },
  action: "cell",
  cell: id,
  ...rest,
});

/** The kinds of problems with rules that end in a fallback, with the ids of the rules. */
const problems = (...rules: object[]): string[] =>
  checkRules([...rules, last]).map(({ rule, kind }) => `${kind} ${rule}`);

describe("unreachable rules", () => {
  it("follow a rule that matches everything", () => {
    expect(problems({ id: "all", action: "proxy" }, path("a", "/a"))).toEqual([
      "unreachable a",
      "unreachable last",
    ]);
    expect(problems(path("all", "/*"))).toEqual([]);
  });

  it("name the rule that hides them", () => {
    const [problem] = checkRules([path("one", "/:x"), path("two", "/b"), last]);
    expect(problem).toEqual({
      rule: "two",
      field: "rules[1]",
      kind: "unreachable",
      message:
        "is never reached, because `rules[0] (one)` matches all of its requests: move it up or remove it",
    } satisfies RuleProblem);
  });

  it.each([
    ["/groups/:name", {}, "/groups/acme", {}],
    ["/groups/*", {}, "/groups/:name/activity", {}],
    ["/groups/*", {}, "/groups", {}],
    ["/groups/*name", {}, "/groups/:name/*", {}],
    ["/*path", {}, "/a/*", {}],
    ["/*path", { until: ["-"] }, "/a/*", {}],
    ["/*path", { until: ["-"] }, "/*path", { until: ["-", "+"] }],
    ["/*path", { notUnder: ["admin"] }, "/groups/:name", {}],
    ["/*path", { notUnder: ["admin"] }, "/:name", { notUnder: ["admin", "api"] }],
    ["/a/:b", { formats: ["json"] }, "/a/b", { formats: ["json"] }],
    ["/a/:b", {}, "/a/:b", { formats: ["json"] }],
  ])("%s %j covers %s %j", (one, oneMore, two, twoMore) => {
    expect(problems(path("one", one, oneMore), path("two", two, twoMore))).toEqual(["unreachable two"]);
  });

  it.each([
    ["/groups/:name", {}, "/groups/:name/*", {}],
    ["/groups/*name", {}, "/groups/*", {}],
    ["/groups/acme", {}, "/groups/:name", {}],
    ["/*path", {}, "/*", {}],
    ["/*path", { until: ["-"] }, "/-/jira", {}],
    ["/*path", { until: ["-"] }, "/:name", {}],
    ["/a/:b", { until: [] }, "/a/b/c", {}],
    ["/*path", { notUnder: ["admin"] }, "/admin/users", {}],
    ["/*path", { notUnder: ["admin"] }, "/:name", {}],
    ["/a/b", {}, "/a/b", { formats: ["json"] }],
    ["/groups/*", {}, "/groups/*", { formats: ["json"] }],
  ])("%s %j doesn't cover %s %j", (one, oneMore, two, twoMore) => {
    expect(problems(path("one", one, oneMore), path("two", two, twoMore))).toEqual([]);
  });

  it("are found among hosts, and among lists of conditions", () => {
    const host = (id: string, pattern: string, ...more: object[]): object => ({
      id,
      match: [{ type: "host", pattern }, ...more],
      action: "cell",
      cell: "1",
    });
    expect(problems(host("one", "*.example.com"), host("two", "a.b.example.com"))).toEqual([
      "unreachable two",
    ]);
    expect(problems(host("one", ":a.example.com"), host("two", "a.b.example.com"))).toEqual([]);
    const admin = { type: "path", pattern: "/admin/*" };
    expect(problems(host("one", ":a.b"), host("two", ":a.b", admin))).toEqual(["unreachable two"]);
    expect(problems(host("one", ":a.b", admin), host("two", ":a.b"))).toEqual([]);
  });

  it("are not those after a rule that goes on, or that can refuse a request", () => {
    expect(problems(path("one", "/:x", {}, { onNotFound: "next" }), path("two", "/b"))).toEqual([]);
    const header = { type: "header", name: "token", regexValue: "^(?<a>\\d+)(?<b>x)?$" };
    const cell = (id: string, value: string): object => ({
      id,
      match: header,
      action: "classify",
      classify: { type: "CELL_ID", value },
    });
    expect(problems(cell("one", "${b}"), cell("two", "${a}"))).toEqual([]);
    expect(problems(cell("one", "${b}"), cell("two", "${b}"))).toEqual(["unreachable two"]);
  });

  it("are those that do the same as an earlier one", () => {
    const rule = { match: { type: "cookie", name: "a" }, action: "cell", cell: "1" };
    const [problem] = checkRules([rule, rule, last]);
    expect(problem).toMatchObject({ rule: "rules[1]", message: "does the same as `rules[0]`: remove it" });
  });
});

describe("other problems", () => {
  it("lists mistakes with the path of their field", () => {
    expect(checkRules([{ id: "a", action: "redirect" }, last])).toEqual([
      {
        rule: "a",
        field: "rules[0].action",
        kind: "invalid",
        message: 'must be one of classify, proxy, cell, first_cell, not_found, but is "redirect"',
      },
    ]);
  });

  it("wants a fallback, which a rule for any path is too", () => {
    expect(checkRules([path("a", "/*path")]).map(({ kind }) => kind)).toEqual(["no_fallback"]);
    expect(checkRules([path("a", "/*")])).toEqual([]);
    expect(checkRules([{ action: "first_cell" }])).toEqual([]);
  });

  it("wants declared bucket types", () => {
    const claims = [
      { type: "ROUTES", value: "a" },
      { type: "ROUTE", value: "a" },
    ];
    const rules = [{ id: "a", action: "classify", classify: { claims }, onNotFound: "next" }, last];
    expect(checkRules(rules, { bucketTypes: ["ROUTES", "USERNAMES"] })).toEqual([
      {
        rule: "a",
        field: "rules[0].classify.claims[1].type",
        kind: "undeclared_type",
        message: "names ROUTE, which is not declared; declared: ROUTES, USERNAMES",
      },
    ]);
    expect(checkRules(rules)).toEqual([]);
  });

  it("asks about every regular expression of a rule", () => {
    const rules = [
      {
        match: { type: "cookie", regexName: "s(a|b)", regexValue: "^(?<t>c)$" },
        transform: { type: "decode-base64-match", input: "${t}", regexValue: "^(?<u>d)" },
        action: "proxy",
      },
      last,
    ];
    const asked = checkRules(rules, { slowness: (source) => `like ${source}` });
    expect(asked.map(({ field, kind }) => `${kind} ${field}`)).toEqual([
      "backtracking rules[0].match.regexName",
      "backtracking rules[0].match.regexValue",
      "backtracking rules[0].transform.regexValue",
    ]);
    // A name has to match as a whole, which can be what makes an expression slow.
    expect(asked[0]?.message).toContain("like ^(?:s(a|b))$.");
    expect(asked[1]?.message).toContain("can hold up the router: like ^(?<t>c)$");
  });

  it("finds nothing wrong with the rules for routes like GitLab's", () => {
    expect(checkRules(gitlabRules, { bucketTypes: ["ROUTES", "USERNAMES", "ORGANIZATION_PATH"] })).toEqual(
      [],
    );
  });

  it("checks 10,000 rules, and compares each with those before it", () => {
    const rules = Array.from({ length: 9_998 }, (_, n) => path(`r${n}`, `/api/:version/${n}/*`));
    expect(problems(...rules, path("same", "/api/v4/77/users"))).toEqual(["unreachable same"]);
  });
});
