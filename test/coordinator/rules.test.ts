/** Checks that the pages of rules and the test titles have the same rules. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { auditActions } from "../../src/coordinator/capabilities/audit/audit.ts";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import { invariants } from "../rigs/sim/violation.ts";
import { kernelPage, otherPages, ruleOf, rules, textOf } from "../support/rules.ts";

const root = join(import.meta.dirname, "../..");
const reference = textOf(kernelPage);

/** The numbers in a text such as `H4, H6 to H9`. */
const numbersIn = (text: string): string[] =>
  [...text.matchAll(/\b([A-Z])(\d+)(?: to \1(\d+))?/g)].flatMap(([, letter = "", first = "", last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) => `${letter}${Number(first) + n}`),
  );

/** The rules with a test that runs at every change. */
function provenRules(): Map<string, string> {
  const proven = new Map<string, string>();
  const files = ["test", "src/users/cell/conformance"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
  );
  for (const file of files.filter((each) => each.endsWith(".ts") && !each.endsWith(".deep.test.ts"))) {
    const text = readFileSync(join(root, file), "utf8");
    for (const [, title] of text.matchAll(
      /\b(?:test|it)(?:\.each\([^)]*\))?\(\s*["'`]((?:\[[A-Z]\d+\] ?)+)/g,
    )) {
      for (const [, rule] of (title ?? "").matchAll(/\[([A-Z]\d+)\]/g)) proven.set(rule ?? "", file);
    }
  }
  return proven;
}

test("every rule has a test", () => {
  expect(rules.length).toBeGreaterThan(25);
  const proven = provenRules();
  expect(rules.filter(({ number }) => !proven.has(number))).toEqual([]);
});

test("no number stands twice, on one page or on two", () => {
  expect(rules.filter((rule) => ruleOf.get(rule.number) !== rule)).toEqual([]);
});

test("the table of the protocol reference has every other page, with its rules", () => {
  const rows = reference.matchAll(/^\| (\[.+?\]) +\| ([^|]+?) +\|/gm);
  const listed = [...rows].map(([, title = "", numbers = ""]) => {
    const [, link = ""] = reference.split(`\n${title}: `);
    const page = join("docs/reference", link.split("\n", 1)[0] ?? "");
    return { page, numbers: numbersIn(numbers) };
  });
  const written = otherPages.map((page) => ({
    page,
    numbers: rules.filter((rule) => rule.page === page).map(({ number }) => number),
  }));
  expect(listed.toSorted((a, b) => (a.page < b.page ? -1 : 1))).toEqual(written);
});

test("every capability of objects has a page of rules, except those that need none", () => {
  const pageOf = (name: string): string => `src/coordinator/capabilities/${name}/rules.md`;
  const names = kinds.capabilities.map(({ name }) => name);
  expect(names.filter((name) => !otherPages.includes(pageOf(name))).toSorted()).toEqual(["stale", "upgrade"]);
});

test("the page about testing names rules, invariants, files and commands that exist", () => {
  const page = readFileSync(join(root, "docs/internals/testing.md"), "utf8");
  const named = (pattern: RegExp): string[] => [...page.matchAll(pattern)].map(([, name = ""]) => name);
  const [, promises = ""] = /^## Which suite attacks.*?$(.*?)^## /ms.exec(page) ?? [];
  const numbers = [...promises.matchAll(/\b(?!D1\b)[A-Z]\d+\b/g)].map(([number]) => number);
  expect(numbers.length).toBeGreaterThan(30);
  expect(numbers.filter((number) => !ruleOf.has(number) && !(number in invariants))).toEqual([]);
  const paths = named(/`((?:test|src)\/[\w./-]+)`/g);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(named(/\bnpm run ([\w:-]+)/g)));
});

test("[O1] the rule lists every action of the audit", () => {
  const { text = "" } = ruleOf.get("O1") ?? {};
  const listed = [...text.matchAll(/`([a-z]+_[a-z]+)`/g)].map(([, action]) => action);
  expect(listed.toSorted()).toEqual([...auditActions].toSorted());
});

test("no number of a withdrawn rule is used again, and no other number is missing", () => {
  const [, section = ""] = /^## Withdrawn rules$(.*)/ms.exec(reference) ?? [];
  const withdrawn = [...section.matchAll(/^- ([A-Z]\d+(?: to [A-Z]\d+)?) /gm)].flatMap(([, text = ""]) =>
    numbersIn(text),
  );
  expect(withdrawn).toContain("J4");
  const numbers = [...ruleOf.keys(), ...withdrawn];
  const byLetter = Map.groupBy(numbers, (number) => number.charAt(0));
  const expected = [...byLetter].flatMap(([letter, { length }]) =>
    Array.from({ length }, (_, n) => `${letter}${n + 1}`),
  );
  expect(numbers.toSorted()).toEqual(expected.toSorted());
});

test("every rule that a test names exists", () => {
  expect([...provenRules()].filter(([rule]) => !ruleOf.has(rule))).toEqual([]);
});
