/** The text of the example and of its guide. Both have the SDK's tables, so that all can share a database. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { migration } from "../../../src/users/cell/postgres/index.ts";
import { findPython, requirePython } from "../../support/python.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string): Promise<string> => readFile(join(root, path), "utf8");

/** Statements without the differences that mean nothing. */
const statements = (text: string): string[] =>
  text
    .split(";")
    .map((statement) => statement.replace(/\s+/g, " ").trim())
    .filter((statement) => statement !== "");

/** The cursor of the SDK's verification is the SDK's own. */
const needed = migration
  .flatMap((text) => statements(text))
  .filter((text) => !text.includes("leasehold_verification_progress"));

test("the example creates the SDK's tables", async () => {
  const [, schema = ""] = /^SCHEMA = """([^"]*)"""/m.exec(await read("examples/python-cell/cell.py")) ?? [];
  expect(statements(schema)).toEqual(needed);
});

test("the guide shows the same tables", async () => {
  const [, schema = ""] =
    /```sql\n(CREATE TABLE[^`]*)```/.exec(await read("docs/guides/any-language.md")) ?? [];
  expect(statements(schema)).toEqual(needed);
});

/** Parses with the grammar of the oldest Python that the README names, then compiles. */
const CHECK = `
import ast, sys
for path in sys.argv[1:]:
    text = open(path).read()
    ast.parse(text, path, feature_version=(3, 9))
    compile(text, path, "exec")
`;

test.skipIf(findPython() === undefined)("Python 3.9 can read the example", async () => {
  const files = ["examples/python-cell/cell.py", "test/examples/python-cell/driver.py"];
  const paths = files.map((file) => join(root, file));
  await promisify(execFile)(requirePython(), ["-W", "error", "-c", CHECK, ...paths]);
});
