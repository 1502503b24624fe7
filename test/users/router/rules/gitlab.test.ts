/** Rules in the forms of GitLab's router, as they are. */
import { describe, expect, it } from "vitest";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";
import type { Match } from "../../../../src/users/router/rules/types.ts";

const base64url = (bytes: Buffer | string): string => Buffer.from(bytes).toString("base64url");

/** A routable token without its checksum, which no router reads: 16 random bytes, the payload, its length. */
function routableToken(prefix: string, payload: string): string {
  const bytes = Buffer.concat([Buffer.alloc(16, 0xfb), Buffer.from(payload), Buffer.of(payload.length)]);
  const text = base64url(bytes);
  return `${prefix}${text}.01.${text.length.toString(36).padStart(2, "0")}0a1b2c3`;
}

const jwt = (claims: object): string =>
  [{ alg: "RS256" }, claims, "signature"]
    .map((part) => base64url(typeof part === "string" ? part : JSON.stringify(part)))
    .join(".");

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

function matchOf(rules: unknown, headers: Record<string, string>, path = "/"): Match | null {
  const url = `https://gitlab.example.com${path}`;
  return compileRuleset(rules).match({ url, headers: new Headers(headers), method: "GET" });
}

const sessionPrefix = [
  {
    match: { type: "cookie", regex_name: "force-cell", regex_value: "^(?<cell_name>cell-\\d+)" },
    action: "classify",
    classify: { type: "SESSION_PREFIX", value: "${cell_name}" },
  },
  {
    match: {
      type: "cookie",
      regex_name: "_gitlab_session(_[0-9a-f]+)?",
      regex_value: "^(?<cell_name>cell-\\d+)-.*",
    },
    action: "classify",
    classify: { type: "SESSION_PREFIX", value: "${cell_name}" },
  },
  { action: "proxy" },
];

const token = "[0-9A-Za-z_-]{27,300}";
const sessionToken = [
  {
    id: "session_token_header_runner_token",
    match: {
      type: "header",
      name: "runner-token",
      regexValue: `^glrtr?-(?<payload>${token})\\.01\\.(?<payload_length>[0-9a-z]{2})[0-9a-z]{7}$`,
    },
    transform: {
      type: "routable-token-payload",
      input: ["${payload}", "${payload_length}"],
      output: "decoded",
    },
    validate: { exist: ["${decoded.c}"] },
    action: "classify",
    classify: { type: "CELL_ID", value: "${decoded.c}" },
  },
  {
    id: "session_token_header_job_token",
    match: {
      type: "header",
      name: "job-token",
      regexValue: "^glcbt-[\\w-]+\\.(?<payload>[\\w-]+)\\.[\\w-]+$",
    },
    transform: { type: "routable-json", input: "${payload}", output: "decoded" },
    validate: { exist: ["${decoded.c}"] },
    action: "classify",
    classify: { type: "CELL_ID", value: "${decoded.c}" },
  },
  {
    id: "session_token_header_authorization_basic_routable_token",
    match: { type: "header", name: "authorization", regexValue: "^Basic (?<credentials>[\\w+/=-]+)$" },
    transform: [
      {
        type: "decode-base64-match",
        input: "${credentials}",
        regexValue: `^[^:]*:(?<payload>${token})\\.01\\.(?<payload_length>[0-9a-z]{2})[0-9a-z]{7}$`,
        output: "password",
      },
      {
        type: "routable-token-payload",
        input: ["${password.payload}", "${password.payload_length}"],
        output: "decoded",
      },
    ],
    validate: { exist: ["${decoded.c}"] },
    action: "classify",
    classify: { type: "CELL_ID", value: "${decoded.c}" },
  },
  { id: "legacy", action: "proxy" },
];

const cellOf = (rules: unknown, headers: Record<string, string>): string => {
  const match = matchOf(rules, headers);
  if (match?.action === "cell") return match.cell;
  return match?.action ?? "no match";
};

describe("case 17: the rules of 2024", () => {
  it("force a cell by cookie, before the session decides", () => {
    const cookie = "_gitlab_session=cell-1-abcdef; force-cell=cell-2";
    expect(matchOf(sessionPrefix, { cookie })).toEqual({
      rule: "rules[0]",
      continues: false,
      action: "session_prefix",
      value: "cell-2",
    });
  });

  it("read the prefix of a session", () => {
    expect(matchOf(sessionPrefix, { cookie: "_gitlab_session=cell-1-abcdef" })).toMatchObject({
      rule: "rules[1]",
      value: "cell-1",
    });
    expect(matchOf(sessionPrefix, { cookie: "_gitlab_session_0af=cell-12-abc" })).toMatchObject({
      value: "cell-12",
    });
  });

  it("proxy everything else to the first cell", () => {
    expect(matchOf(sessionPrefix, {})).toMatchObject({ rule: "rules[2]", action: "first_cell" });
    expect(matchOf(sessionPrefix, { cookie: "_gitlab_session=abcdef" })).toMatchObject({ rule: "rules[2]" });
    expect(matchOf(sessionPrefix, { cookie: "_gitlab_session=cell-1003abc" })).toMatchObject({
      rule: "rules[2]",
    });
  });

  it("decode lines of base 64 from a path", () => {
    const rules = [
      {
        match: { type: "path", regex_value: "^/-/test-routable-token/(?<payload>.*)$" },
        transform: { type: "base64-line-delimited", input: "${payload}", output: "decoded" },
        action: "classify",
        classify: { type: "SessionPrefix", value: "cell-${decoded.c}" },
      },
    ];
    const path = (text: string): string => `/-/test-routable-token/${base64url(text)}`;
    expect(matchOf(rules, {}, path("o:1\nc:7\n"))).toMatchObject({ value: "cell-7" });
    expect(matchOf(rules, {}, path("o:1"))).toBeNull();
  });
});

describe("case 17: the rules of 2026", () => {
  it("read the cell of a routable token, in base 36", () => {
    const headers = (payload: string): Record<string, string> => ({
      "runner-token": routableToken("glrt-", payload),
    });
    expect(cellOf(sessionToken, headers("c:1\no:1\nu:a"))).toBe("1");
    expect(cellOf(sessionToken, headers("c:10\no:1"))).toBe("36");
    expect(cellOf(sessionToken, headers("c:3w5e11264sgsf\no:1"))).toBe("18446744073709551615");
  });

  it("read a token whose payload follows another prefix, by the length of the payload", () => {
    expect(cellOf(sessionToken, { "runner-token": routableToken("glrtr-t3_", "c:5\no:1") })).toBe("5");
  });

  it("read the cell of a JSON web token", () => {
    expect(cellOf(sessionToken, { "job-token": `glcbt-${jwt({ c: "1a", sub: "x" })}` })).toBe("46");
    expect(cellOf(sessionToken, { "job-token": `glcbt-${jwt({ c: 46 })}` })).toBe("46");
  });

  it("read the token in the password of basic authentication", () => {
    const password = routableToken("glpat-", "c:3\no:1");
    expect(cellOf(sessionToken, { authorization: basic("joe", password) })).toBe("3");
  });

  it.each([
    ["no cell", routableToken("glrt-", "o:1\nu:2\ng:3\np:44444")],
    ["no number", routableToken("glrt-", "c:ABC\no:1111111")],
    ["a length that is not the token's", routableToken("glrt-", "c:1\no:1").replace(".01.", "x.01.")],
    ["random bytes", `glrt-${base64url(Buffer.alloc(40, 7))}.01.1i0a1b2c3`],
    ["an older token", "glrt-abcdefghijklmnopqrst"],
    ["another version", routableToken("glrt-", "c:1\no:1").replace(".01.", ".02.")],
  ])("go on to the next rule for a token with %s", (_, value) => {
    expect(cellOf(sessionToken, { "runner-token": value })).toBe("first_cell");
  });

  it.each([
    ["no JSON", base64url("{c")],
    ["a list", base64url("[1]")],
    ["no base 64", "a"],
    ["no cell", base64url('{"o":"1"}')],
    ["an object as the cell", base64url('{"c":{}}')],
  ])("go on to the next rule for a web token with %s", (_, payload) => {
    expect(cellOf(sessionToken, { "job-token": `glcbt-x.${payload}.y` })).toBe("first_cell");
  });

  it("go on to the next rule if the password is no token", () => {
    expect(cellOf(sessionToken, { authorization: basic("joe", "secret") })).toBe("first_cell");
    expect(cellOf(sessionToken, { authorization: "Basic x" })).toBe("first_cell");
  });
});
