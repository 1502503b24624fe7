/** Checks that the protocol reference and the test titles have the same rules. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { auditActions } from "../../src/coordinator/capabilities/audit/audit.ts";
import { invariants } from "../rigs/sim/violation.ts";

const root = join(import.meta.dirname, "../..");
const reference = readFileSync(join(root, "docs/reference/protocol.md"), "utf8");
const rules = new Set([...reference.matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)].map(([, rule = ""]) => rule));

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

test("every rule of the protocol reference has a test", () => {
  expect(rules.size).toBeGreaterThan(25);
  const proven = provenRules();
  expect([...rules].filter((rule) => !proven.has(rule))).toEqual([]);
});

test("the page about testing names rules, invariants, files and commands that exist", () => {
  const page = readFileSync(join(root, "docs/internals/testing.md"), "utf8");
  const named = (pattern: RegExp): string[] => [...page.matchAll(pattern)].map(([, name = ""]) => name);
  const [, promises = ""] = /^## Which suite attacks.*?$(.*?)^## /ms.exec(page) ?? [];
  const numbers = [...promises.matchAll(/\b(?!D1\b)[A-Z]\d+\b/g)].map(([number]) => number);
  expect(numbers.length).toBeGreaterThan(30);
  expect(numbers.filter((number) => !rules.has(number) && !(number in invariants))).toEqual([]);
  const paths = named(/`((?:test|src)\/[\w./-]+)`/g);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(named(/\bnpm run ([\w:-]+)/g)));
});

test("[O1] the rule lists every action of the audit", () => {
  const [, rule = ""] = /^- \*\*O1\*\*(.*?)^- \*\*O2\*\*/ms.exec(reference) ?? [];
  const listed = [...rule.matchAll(/`([a-z]+_[a-z]+)`/g)].map(([, action]) => action);
  expect(listed.toSorted()).toEqual([...auditActions].toSorted());
});

test("no number of a withdrawn rule is used again, and no other number is missing", () => {
  const [, section = ""] = /^## Withdrawn rules$(.*)/ms.exec(reference) ?? [];
  const withdrawn = [...section.matchAll(/^- ([A-Z])(\d+)(?: to \1(\d+))? /gm)].flatMap(
    ([, letter = "", first = "", last = first]) =>
      Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) => `${letter}${Number(first) + n}`),
  );
  expect(withdrawn).toContain("J4");
  const numbers = [...rules, ...withdrawn];
  const byLetter = Map.groupBy(numbers, (number) => number.charAt(0));
  const expected = [...byLetter].flatMap(([letter, { length }]) =>
    Array.from({ length }, (_, n) => `${letter}${n + 1}`),
  );
  expect(numbers.toSorted()).toEqual(expected.toSorted());
});

test("every rule that a test names is in the protocol reference", () => {
  expect([...provenRules()].filter(([rule]) => !rules.has(rule))).toEqual([]);
});
