import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RulesetError } from "../../../../src/users/router/rules/fields.ts";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";
import type { Match, RuleFinding } from "../../../../src/users/router/rules/types.ts";

const ORIGIN = "https://app.example.com";

const matchOf = (rules: unknown, path: string, headers: Record<string, string> = {}): Match | null =>
  compileRuleset(rules).match({ url: ORIGIN + path, headers: new Headers(headers), method: "GET" });

/** The candidates of a request, as texts, or null if no rule matches. */
function candidates(rules: unknown, path: string, headers: Record<string, string> = {}): string[] | null {
  const match = matchOf(rules, path, headers);
  if (match === null) return null;
  if (match.action !== "classify") throw new Error(`action ${match.action}`);
  return match.candidates.map(({ type, value }) => `${type} ${value}`);
}

function findings(document: unknown): readonly RuleFinding[] {
  try {
    compileRuleset(document);
  } catch (error) {
    if (error instanceof RulesetError) return error.findings;
    throw error;
  }
  return [];
}

const classifyPath = (pattern: object, classify: object = {}): unknown[] => [
  {
    match: { type: "path", ...pattern },
    action: "classify",
    classify: { type: "ROUTES", value: "${path}", ...classify },
  },
];

describe("path patterns", () => {
  it("tries the prefixes of a path, the longest first", () => {
    const rules = classifyPath({ pattern: "/*path" }, { prefixDepth: 5 });
    expect(candidates(rules, "/a/b/c")).toEqual(["ROUTES a/b/c", "ROUTES a/b", "ROUTES a"]);
    expect(candidates(rules, "/a//b/")).toEqual(["ROUTES a/b", "ROUTES a"]);
    expect(candidates(rules, "/")).toBeNull();
  });

  it("starts with no more segments than `prefixDepth`", () => {
    expect(candidates(classifyPath({ pattern: "/*path" }, { prefixDepth: 2 }), "/a/b/c/d")).toEqual([
      "ROUTES a/b",
      "ROUTES a",
    ]);
    expect(candidates(classifyPath({ pattern: "/*path" }, { prefixDepth: 1 }), "/a/b")).toEqual(["ROUTES a"]);
  });

  it("captures single segments, and matches the whole path unless it ends in a star", () => {
    const exact = classifyPath({ pattern: "/groups/:path" });
    expect(candidates(exact, "/groups/acme")).toEqual(["ROUTES acme"]);
    expect(candidates(exact, "/groups/acme/")).toEqual(["ROUTES acme"]);
    expect(candidates(exact, "/groups/acme/activity")).toBeNull();
    expect(candidates(exact, "/groups")).toBeNull();
    const open = classifyPath({ pattern: "/groups/:path/*" });
    expect(candidates(open, "/groups/acme")).toEqual(["ROUTES acme"]);
    expect(candidates(open, "/groups/acme/-/activity")).toEqual(["ROUTES acme"]);
  });

  it("ends a rest before the segments in `until`, and skips paths in `notUnder`", () => {
    const rules = classifyPath(
      { pattern: "/*path", until: ["-"], notUnder: ["admin", "api"] },
      { prefixDepth: 20 },
    );
    expect(candidates(rules, "/a/b/-/issues/1")).toEqual(["ROUTES a/b", "ROUTES a"]);
    expect(candidates(rules, "/-/jira")).toBeNull();
    expect(candidates(rules, "/admin/users")).toBeNull();
    expect(candidates(rules, "/administrator")).toEqual(["ROUTES administrator"]);
  });

  it("cuts one format off the end, and tries the name with it first", () => {
    const rules = classifyPath({ pattern: "/*path", formats: ["json", "atom"] }, { prefixDepth: 3 });
    expect(candidates(rules, "/john.doe")).toEqual(["ROUTES john.doe"]);
    expect(candidates(rules, "/john.doe.json")).toEqual(["ROUTES john.doe.json", "ROUTES john.doe"]);
    expect(candidates(rules, "/a/b.json")).toEqual(["ROUTES a/b.json", "ROUTES a/b", "ROUTES a"]);
    expect(candidates(rules, "/a.json.atom")).toEqual(["ROUTES a.json.atom", "ROUTES a.json"]);
    expect(candidates(rules, "/.json")).toEqual(["ROUTES .json"]);
  });

  it("excludes a page in another format like the page itself", () => {
    const rules = classifyPath({ pattern: "/*path", notUnder: ["admin"], formats: ["json"] });
    expect(candidates(rules, "/admin.json")).toBeNull();
  });

  it("compares literal segments without the format", () => {
    const rules = classifyPath({ pattern: "/users/:path/activity", formats: ["json"] });
    expect(candidates(rules, "/users/john.doe/activity.json")).toEqual(["ROUTES john.doe"]);
  });

  it("decodes segments, and leaves what is not valid percent-encoding as it is", () => {
    const rules = classifyPath({ pattern: "/api/projects/:path" }, { prefixDepth: 4 });
    expect(candidates(rules, "/api/projects/acme%2Fweb%20app")).toEqual([
      "ROUTES acme/web app",
      "ROUTES acme",
    ]);
    expect(candidates(rules, "/api/projects/100%")).toEqual(["ROUTES 100%"]);
  });

  it("makes no name of a text of more than 4096 characters, instead of cutting it", () => {
    const rules = classifyPath({ pattern: "/*path" });
    expect(candidates(rules, `/${"a".repeat(4096)}`)).toEqual([`ROUTES ${"a".repeat(4096)}`]);
    expect(candidates(rules, `/${"a".repeat(4097)}`)).toBeNull();
  });
});

describe("other conditions", () => {
  const rule = (match: unknown, value: string): unknown[] => [
    { match, action: "classify", classify: { type: "DOMAINS", value } },
  ];

  it("matches host names from the right, without the port", () => {
    const host = (pattern: string, url: string): string[] | null => {
      const match = compileRuleset(rule({ type: "host", pattern }, "${name}")).match({
        url,
        headers: new Headers(),
        method: "GET",
      });
      return match?.action === "classify" ? match.candidates.map(({ value }) => value) : null;
    };
    expect(host(":name.Pages.example.com", "https://acme.pages.example.com:8443/x")).toEqual(["acme"]);
    expect(host(":name.pages.example.com", "https://a.b.pages.example.com/")).toBeNull();
    expect(host("*name.example.com", "https://a.b.example.com./")).toEqual(["a.b"]);
    expect(host("*name", "https://blog.acme.org/")).toEqual(["blog.acme.org"]);
  });

  it("reads headers in any case, and cookies by exact name", () => {
    const header = rule({ type: "header", name: "X-Tenant", regexValue: "^(?<tenant>\\w+)$" }, "${tenant}");
    expect(candidates(header, "/", { "x-tenant": "acme" })).toEqual(["DOMAINS acme"]);
    expect(candidates(header, "/", { "x-tenant": "no tenant" })).toBeNull();
    const cookie = rule({ type: "cookie", name: "tenant", regexValue: "^(?<tenant>\\w+)$" }, "${tenant}");
    expect(candidates(cookie, "/", { cookie: 'a=b; tenant="acme"; Tenant=other' })).toEqual(["DOMAINS acme"]);
    expect(candidates(cookie, "/", { cookie: "xtenant=acme; tenant" })).toBeNull();
  });

  it("compares a name's regular expression with the whole name", () => {
    const rules = rule(
      { type: "cookie", regexName: "session(_[0-9a-f]+)?", regexValue: "^(?<tenant>\\w+)-" },
      "${tenant}",
    );
    expect(candidates(rules, "/", { cookie: "session_0a=acme-1" })).toEqual(["DOMAINS acme"]);
    expect(candidates(rules, "/", { cookie: "xsession=acme-1; session_xy=acme-1" })).toBeNull();
  });

  it("takes the first value that matches", () => {
    const rules = rule({ type: "cookie", regexName: "s\\d", regexValue: "^(?<t>[a-z]+)$" }, "${t}");
    expect(candidates(rules, "/", { cookie: "s1=1; s2=two; s3=three" })).toEqual(["DOMAINS two"]);
  });

  it("doesn't try a regular expression on a value of more than 4096 characters", () => {
    const rules = rule({ type: "header", name: "x", regexValue: "^(?<t>a)" }, "${t}");
    expect(candidates(rules, "/", { x: "a".repeat(4096) })).toEqual(["DOMAINS a"]);
    expect(candidates(rules, "/", { x: "a".repeat(4097) })).toBeNull();
  });

  it("wants all conditions of a list", () => {
    const rules = rule(
      [
        { type: "host", pattern: ":tenant.example.com" },
        { type: "path", pattern: "/u/:user" },
      ],
      "${tenant}/${user}",
    );
    expect(candidates(rules, "/u/joe")).toEqual(["DOMAINS app/joe"]);
    expect(candidates(rules, "/v/joe")).toBeNull();
  });
});

describe("rules", () => {
  it("applies the first rule that matches", () => {
    const rules = [
      { id: "one", match: { type: "header", name: "x" }, action: "cell", cell: "7" },
      { id: "two", action: "first_cell" },
    ];
    expect(matchOf(rules, "/", { x: "" })).toMatchObject({ rule: "one", action: "cell", cell: "7" });
    expect(matchOf(rules, "/")).toMatchObject({ rule: "two", action: "first_cell" });
  });

  it("returns null if no rule matches, so there is no default cell unless a rule names one", () => {
    expect(matchOf([{ match: { type: "header", name: "x" }, action: "first_cell" }], "/")).toBeNull();
  });

  it("goes on to the next rule after one with `onNotFound: next`, and only then", () => {
    const rules = [
      ...classifyPath({ pattern: "/*path" }).map((rule) => ({ ...(rule as object), onNotFound: "next" })),
      { id: "two", action: "not_found" },
      { id: "three", action: "first_cell" },
    ];
    const matches = compileRuleset(rules).matches({
      url: `${ORIGIN}/a`,
      headers: new Headers(),
      method: "GET",
    });
    expect([...matches].map((match) => match.rule)).toEqual(["rules[0]", "two"]);
  });

  it("sends the action proxy to `defaultCell`, or to the first cell", () => {
    expect(matchOf([{ action: "proxy" }], "/")).toMatchObject({ action: "first_cell" });
    expect(matchOf({ defaultCell: "3", rules: [{ action: "proxy" }] }, "/")).toEqual({
      rule: "rules[0]",
      continues: false,
      action: "cell",
      cell: "3",
      isFallback: true,
    });
  });

  it("keeps the order of several claims, and drops names that come twice", () => {
    const rules = [
      {
        match: { type: "path", pattern: "/:name/*" },
        action: "classify",
        classify: {
          claims: [
            { type: "ROUTES", value: "${name}" },
            { type: "REDIRECT_ROUTES", value: "${name}" },
            { type: "ROUTES", value: "${name}" },
          ],
        },
      },
    ];
    expect(candidates(rules, "/acme/app")).toEqual(["ROUTES acme", "REDIRECT_ROUTES acme"]);
    expect(compileRuleset(rules).bucketTypes).toEqual(["ROUTES", "REDIRECT_ROUTES"]);
  });

  it("makes at most 64 names of a request", () => {
    const claims = ["A", "B", "C"].map((type) => ({ type, value: "${path}", prefixDepth: 32 }));
    const rules = [{ match: { type: "path", pattern: "/*path" }, action: "classify", classify: { claims } }];
    expect(candidates(rules, "/x".repeat(40))).toHaveLength(64);
  });
});

describe("mistakes in a document", () => {
  it.each(["constructor", "toString"])("takes %s for a bucket type like any other", (type) => {
    const rules = [{ id: "r", action: "classify", classify: { type, value: "a" } }];
    expect(compileRuleset(rules).bucketTypes).toEqual([type]);
  });

  const one = (rule: object): RuleFinding | undefined => findings([{ id: "r", ...rule }])[0];
  const path = { match: { type: "path", pattern: "/:name" }, action: "classify" };

  it.each([
    ["a text", "rules", "document", "must be an object"],
    ["no rules", [], "rules", "at least one rule"],
    ["an unknown field", { rules: [{ action: "proxy" }], version: 1 }, "version", "known: $schema, rules"],
    ["undefined", undefined, "rules", "must be a JSON document"],
    ["a rule that is a list", [[]], "rules[0]", "must be an object, but is a list"],
    [
      "two rules with one id",
      [
        { id: "a", action: "proxy" },
        { id: "a", action: "proxy" },
      ],
      "rules[1].id",
      "",
    ],
  ])("%s: names the field", (_, document, field, message) => {
    expect(findings(document)[0]).toMatchObject({ field, message: expect.stringContaining(message) });
  });

  const mistakes: [rule: object, field: string, message: string][] = [
    [{ action: "redirect" }, "action", "must be one of classify, proxy, cell, first_cell, not_found"],
    [{}, "action", "is required"],
    [{ action: "proxy", regex: "x" }, "regex", "is not a known field"],
    [{ action: "cell" }, "cell", "is required"],
    [{ action: "proxy", cell: "1" }, "cell", "is only for the action cell"],
    [{ action: "classify" }, "classify", "is required"],
    [{ ...path, classify: { type: "ROUTES" } }, "classify.value", "is required"],
    [{ ...path, classify: { type: "ROUTES", value: "${nam}" } }, "classify.value", "uses `${nam}`"],
    [{ ...path, classify: { type: "ROUTES", value: "${name" } }, "classify.value", "without a `}`"],
    [{ ...path, classify: { type: "ROUTES", value: "${a b}" } }, "classify.value", "between the braces"],
    [{ ...path, classify: { claims: [] } }, "classify.claims", "at least one claim"],
    [{ ...path, classify: { claims: [{ type: "A", value: 1 }] } }, "classify.claims[0].value", "a string"],
    [
      { ...path, classify: { claims: [{ type: "CELL_ID", value: "1" }] } },
      "classify.claims[0].type",
      "names a cell",
    ],
    [
      { ...path, classify: { type: "ROUTES", value: "x", prefixDepth: 33 } },
      "classify.prefixDepth",
      "from 1 to 32",
    ],
    [{ ...path, classify: { type: "CELL_ID", value: "1", prefixDepth: 1 } }, "classify.prefixDepth", "cell"],
    [{ match: {}, action: "proxy" }, "match.type", "is required"],
    [{ match: { type: "query" }, action: "proxy" }, "match.type", "path, host, header, cookie"],
    [{ match: { type: "path" }, action: "proxy" }, "match", "must have `pattern` or `regexValue`"],
    [{ match: { type: "path", pattern: "a" }, action: "proxy" }, "match.pattern", "begin with a slash"],
    [
      { match: { type: "path", pattern: "/*a/b" }, action: "proxy" },
      "match.pattern",
      "only allowed at the end",
    ],
    [{ match: { type: "path", pattern: "/:a/:a" }, action: "proxy" }, "match.pattern", '"a" twice'],
    [{ match: { type: "path", pattern: "/:" }, action: "proxy" }, "match.pattern", "without a name"],
    [
      { match: { type: "path", pattern: "/:a", until: ["-"] }, action: "proxy" },
      "match.until",
      "ends a rest",
    ],
    [{ match: { type: "path", pattern: "/a", formats: "json" }, action: "proxy" }, "match.formats", "a list"],
    [
      { match: { type: "path", pattern: "/a", name: "x" }, action: "proxy" },
      "match.name",
      "of the type path",
    ],
    [{ match: { type: "host", pattern: "a..b" }, action: "proxy" }, "match.pattern", "must be a host name"],
    [{ match: { type: "host", pattern: "a.*b" }, action: "proxy" }, "match.pattern", "at the start"],
    [{ match: { type: "header", name: "a b" }, action: "proxy" }, "match.name", "the name of a header"],
    [
      { match: { type: "header", name: "a", regexValue: "(" }, action: "proxy" },
      "match.regexValue",
      "is not a",
    ],
    [{ match: { type: "cookie", regexName: "a)|(b" }, action: "proxy" }, "match.regexName", "is not a"],
    [
      { match: { type: "cookie", name: "a", regexName: "b" }, action: "proxy" },
      "match",
      "name and regexName",
    ],
    [
      { match: { type: "header", name: "a", regexValue: "x".repeat(1001) }, action: "proxy" },
      "match.regexValue",
      "at most 1000",
    ],
    [{ transform: { type: "base64" }, action: "proxy" }, "transform.type", "must be one of"],
    [
      { transform: { type: "routable-json", input: "x" }, action: "proxy" },
      "transform.output",
      "is required",
    ],
    [
      { transform: { type: "routable-token-payload", input: "x", output: "d" }, action: "proxy" },
      "transform.input",
      "2 texts",
    ],
    [
      { transform: { type: "decode-base64-match", input: "x" }, action: "proxy" },
      "transform",
      "must have `regexValue`",
    ],
    [{ validate: { exist: ["${d.c}"] }, action: "proxy" }, "validate.exist[0]", "uses `${d.c}`"],
    [{ onNotFound: "continue", action: "proxy" }, "onNotFound", "must be one of stop, next"],
    [
      {
        match: [
          { type: "path", pattern: "/:a" },
          { type: "host", pattern: ":a.b" },
        ],
        action: "proxy",
      },
      "match",
      "captures a twice",
    ],
  ];

  it.each(mistakes.map(([rule, field, message]) => ({ rule, field, message })))(
    "$field, $message: names the field and the rule",
    ({ rule, field, message }) => {
      expect(one(rule)).toEqual({
        rule: "r",
        field: `rules[0].${field}`,
        message: expect.stringContaining(message),
      });
    },
  );

  it("refuses ids that no cookie can carry, and names their field", () => {
    expect(findings([{ id: "é".repeat(101), action: "proxy" }])).toEqual([
      { field: "rules[0].id", message: "has 202 bytes of UTF-8; at most 200 are allowed" },
    ]);
    expect(findings([{ id: "\ud800", action: "proxy" }])).toEqual([
      { field: "rules[0].id", message: "must be well-formed Unicode" },
    ]);
    expect(findings([{ id: "é".repeat(100), action: "proxy" }])).toEqual([]);
  });

  it("lists all mistakes of a document, and at most 100", () => {
    expect(findings([{ action: "a" }, { action: "b" }]).map(({ field }) => field)).toEqual([
      "rules[0].action",
      "rules[1].action",
    ]);
    const many = findings(Array.from({ length: 150 }, () => ({ action: "a" })));
    expect(many).toHaveLength(101);
    expect(many.at(-1)?.message).toBe("has 50 more mistakes, not listed");
  });

  it("doesn't blame a template for a condition that could not be read", () => {
    const rule = { ...path, match: { type: "path", pattern: ":name" } };
    expect(findings([{ ...rule, classify: { type: "ROUTES", value: "${name}" } }])).toHaveLength(1);
  });

  it("accepts 10,000 rules and refuses one more", () => {
    const rules = (count: number): object[] =>
      Array.from({ length: count }, (_, n) => ({
        match: { type: "path", pattern: `/${n}` },
        action: "proxy",
      }));
    expect(compileRuleset(rules(10_000)).rules).toHaveLength(10_000);
    expect(findings(rules(10_001))).toEqual([
      { field: "rules", message: expect.stringContaining("at most 10000") },
      expect.anything(),
    ]);
  });

  it("refuses a document of more than 2 MiB", () => {
    const long = { $schema: "x".repeat(2 * 1024 * 1024), rules: [{ action: "proxy" }] };
    expect(findings(long)[0]?.message).toContain("at most 2097152 are allowed");
  });
});

describe("any input", () => {
  it("compiles any JSON document, or says what is wrong with it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (document) => {
        findings(document);
        findings([document]);
        findings([{ match: document, transform: document, validate: document, action: "proxy" }]);
        findings([{ action: "classify", classify: document }]);
      }),
    );
  });

  it("evaluates any request", () => {
    const ruleset = compileRuleset([
      ...classifyPath({ pattern: "/*path", until: ["-"], formats: ["json"] }, { prefixDepth: 3 }),
      {
        match: { type: "header", name: "x", regexValue: "^(?<text>.*)$" },
        transform: { type: "routable-json", input: "${text}", output: "d" },
        action: "classify",
        classify: { type: "CELL_ID", value: "${d.c}" },
      },
      {
        match: { type: "cookie", regexName: ".*", regexValue: "(?<text>.*)" },
        transform: { type: "routable-token-payload", input: ["${text}", "1c"], output: "d" },
        action: "classify",
        classify: { type: "CELL_ID", value: "${d.c}" },
      },
    ]);
    const visible = fc.string({
      unit: fc.integer({ min: 32, max: 126 }).map((c) => String.fromCodePoint(c)),
    });
    fc.assert(
      fc.property(fc.webPath(), visible, visible, (path, header, cookie) => {
        const match = ruleset.match({
          url: `${ORIGIN}${path}`,
          headers: new Headers({ x: header, cookie }),
          method: "GET",
        });
        for (const { value } of match?.action === "classify" ? match.candidates : [])
          expect(value.length).toBeGreaterThan(0);
      }),
    );
  });
});
