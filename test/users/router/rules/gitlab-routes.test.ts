/** Case 16: all spellings of a route are routed by the same name. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";
import { gitlabRoutes, gitlabRules } from "./gitlab-routes.ts";

const ruleset = compileRuleset(gitlabRules);

/** The rule and the name that decide for a path, if these names have owners. */
function decision(path: string, owned: ReadonlySet<string>): string {
  const url = `https://gitlab.example.com${path}`;
  for (const match of ruleset.matches({ url, headers: new Headers(), method: "GET" })) {
    if (match.action !== "classify") return match.rule;
    const name = match.candidates.find(({ value }) => owned.has(value));
    if (name !== undefined) return `${match.rule}: ${name.type} ${name.value}`;
  }
  return "no rule";
}

const nameOf = (text: string): string => text.replace(/^[\w-]+: /, "");

describe("case 16: routes like GitLab's", () => {
  const owned = new Set(["acme", "joe.doe"]);

  it.each(gitlabRoutes)("$template", ({ example, dotted, acceptsFormat, type }) => {
    const plain = decision(example, owned);
    expect(nameOf(plain)).toBe(type === null ? "legacy" : `${type} acme`);
    const other = plain.replace(/acme$/, "joe.doe");
    expect(decision(dotted, owned)).toBe(other);
    if (!acceptsFormat) return;
    expect(decision(`${example}.json`, owned)).toBe(plain);
    expect(decision(`${dotted}.json`, owned)).toBe(other);
  });

  it("has some 60 routes with a name", () => {
    expect(gitlabRoutes.filter(({ type }) => type !== null).length).toBeGreaterThanOrEqual(60);
  });

  it("prefers the longest path that has an owner", () => {
    const nested = new Set(["acme", "acme/web", "acme/web/app"]);
    const paths = (path: string): string => decision(path, nested);
    expect(paths("/acme/web/app/-/issues/7.json")).toBe("paths: ROUTES acme/web/app");
    expect(paths("/acme/web/app.json")).toBe("paths: ROUTES acme/web/app");
    expect(paths("/acme/web/tool")).toBe("paths: ROUTES acme/web");
    expect(paths("/groups/acme/web/-/epics/1")).toBe("groups: ROUTES acme/web");
    expect(paths("/api/v4/projects/acme%2Fweb%2Fapp.json")).toBe("api-projects: ROUTES acme/web/app");
    expect(paths("/acme/other")).toBe("paths: ROUTES acme");
  });

  it("prefers a name that ends like a format to the name without it", () => {
    expect(decision("/acme.json", new Set(["acme", "acme.json"]))).toBe("paths: ROUTES acme.json");
  });
});

/** Set it to a copy of GitLab's `config/routing/gitlab_routes.json` to check all of its routes. */
const file = process.env["GITLAB_ROUTES_FILE"];

interface SnapshotRoute {
  template: string;
  example: string;
  acceptsFormat?: boolean;
  dottedExample?: string;
}

/** Without the variable there are no such tests, because a skipped test counts as one that did not pass. */
function testRoutesIn(snapshot: string): void {
  const routes = JSON.parse(readFileSync(snapshot, "utf8")) as SnapshotRoute[];
  it("has routes", () => {
    expect(routes.length).toBeGreaterThan(0);
  });

  it.each([
    ["groups", ["foo"]],
    ["groups and projects", ["foo", "foo/bar", "foo/bar/foo"]],
  ])("classifies the spellings of each route alike, if %s have owners", (_, names) => {
    const owned = new Set([...names, ...names.map(inDotted)]);
    const differences = routes.flatMap(({ template, example, acceptsFormat = false, dottedExample }) => {
      const plain = decision(example, owned);
      const variants: [path: string, expected: string][] = [];
      if (acceptsFormat) variants.push([`${example}.json`, plain]);
      if (dottedExample !== undefined) {
        const dotted = inDotted(plain);
        variants.push([dottedExample, dotted]);
        if (acceptsFormat) variants.push([`${dottedExample}.json`, dotted]);
      }
      return variants.flatMap(([path, expected]) => {
        const actual = decision(path, owned);
        return actual === expected ? [] : `${template}: ${path} gives ${actual}, not ${expected}`;
      });
    });
    expect(differences).toEqual([]);
  });
}

/** The words of the snapshot's examples and of its dotted examples. */
const inDotted = (text: string): string => text.replaceAll("foo", "john.doe");

if (file !== undefined) describe("case 16: the routes in GITLAB_ROUTES_FILE", () => testRoutesIn(file));
