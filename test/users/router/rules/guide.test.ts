/** The rules in the reference page are valid, and do what the page says. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkRules } from "../../../../src/users/router/rules/check.ts";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../docs/reference/routing-rules.md"), "utf8");
const documents = [...page.matchAll(/^```json\n(.*?)^```$/gms)].map(
  ([, json = ""]) => JSON.parse(json) as unknown,
);

it("the page's rules pass the checker", () => {
  expect(documents).toHaveLength(2);
  expect(documents.flatMap((document) => checkRules(document))).toEqual([]);
});

it("the page's first rules try the prefixes of a path, then the first cell", () => {
  const matches = compileRuleset(documents[0]).matches(new Request("https://a.example/acme/web/-/issues/7"));
  expect([...matches]).toMatchObject([
    {
      rule: "paths",
      candidates: [
        { type: "ROUTES", value: "acme/web" },
        { type: "ROUTES", value: "acme" },
      ],
    },
    { rule: "other", action: "first_cell" },
  ]);
});
