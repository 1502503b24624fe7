/** Checks that the protocol reference and the test titles have the same rules. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { auditActions } from "../../src/core/audit.ts";

const root = join(import.meta.dirname, "../..");
const reference = readFileSync(join(root, "docs/reference/protocol.md"), "utf8");
const rules = new Set([...reference.matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)].map(([, rule]) => rule));

/** The rules with a test that runs at every change. */
function provenRules(): Map<string, string> {
  const proven = new Map<string, string>();
  const files = ["test", "src/cell/conformance"].flatMap((folder) =>
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
  expect([...rules].filter((rule) => !proven.has(rule ?? ""))).toEqual([]);
});

test("[O1] the rule lists every action of the audit", () => {
  const [, rule = ""] = /^- \*\*O1\*\*(.*?)^- \*\*O2\*\*/ms.exec(reference) ?? [];
  const listed = [...rule.matchAll(/`([a-z]+_[a-z]+)`/g)].map(([, action]) => action);
  expect(listed.toSorted()).toEqual([...auditActions].toSorted());
});

test("every rule that a test names is in the protocol reference", () => {
  expect([...provenRules()].filter(([rule]) => !rules.has(rule))).toEqual([]);
});
