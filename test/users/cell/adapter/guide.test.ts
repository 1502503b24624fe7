/** The adapter of docs/guides/write-an-adapter.md is the one that the conformance suite tests here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test("the guide shows this adapter", () => {
  const guide = readFileSync("docs/guides/write-an-adapter.md", "utf8");
  const adapter = readFileSync(join(import.meta.dirname, "postgres-js-database.ts"), "utf8");
  expect(guide).toContain(`\`\`\`ts\n${adapter}\`\`\``);
});
