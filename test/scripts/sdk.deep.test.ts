/** The npm package: what linters and compilers say about it, and what its build refuses. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { buildSdk } from "../../scripts/sdk/build.ts";
import { entries, type Entry } from "../../scripts/sdk/entries.ts";
import { buildJavascript } from "../../scripts/sdk/javascript.ts";
import { buildTypes } from "../../scripts/sdk/types.ts";
import { compileAgainstSdk } from "../../scripts/sdk/compile.ts";
import { linkPeers } from "../../scripts/sdk/consumer.ts";
import { compileExamples, examplesOf } from "../../scripts/sdk/examples.ts";
import { lintSdk, resolveSdk } from "../../scripts/sdk/lint.ts";
import { INSTALL_MS, PackedSdk } from "./packed-sdk.ts";

const root = join(import.meta.dirname, "../..");

/** What the compiler reports about `work`, which must not compile. */
function compilerErrors(work: () => void): string {
  try {
    work();
  } catch (error) {
    return String(error);
  }
  throw new Error("it compiles");
}

describe("the package", () => {
  let packed: PackedSdk;
  let project: string;

  beforeAll(async () => {
    packed = await PackedSdk.install();
    ({ project } = packed);
    linkPeers(root, project);
  }, INSTALL_MS);
  afterAll(() => packed.remove());

  test("passes publint and attw", async () => {
    await lintSdk(packed.folder, packed.tarball);
    resolveSdk(root, packed.tarball);
  });

  test("compiles in every setup", () => compileAgainstSdk(project, entries));

  test("does not compile a broken example", () => {
    const text = '```ts\nimport { createClient } from "leasehold/client";\ncreateClient({ uri: 7 });\n```\n';
    expect(() => compileExamples(project, examplesOf("docs/broken.md", text))).toThrow(
      /docs_broken_md_2\.ts\(2,\d+\): error TS\d+: .*'uri'/,
    );
  });

  test("the compiler names the column that is missing or misspelled", () => {
    const misspelled = (column: string) =>
      new RegExp(`^error TS\\d+: Object literal .*'${column}' does not exist`);
    const missing = (column: string) => new RegExp(`^error TS\\d+: Property '${column}' is missing in type`);
    const cases: [code: string, message: RegExp][] = [
      ["await tx.insert(emails, { email: 'a@x.io' });", missing("confirmed")],
      ["await tx.insert(users, { username: 'ada', confirmd: true });", misspelled("confirmd")],
      ["await tx.insert(users, { usernme: 'ada' });", misspelled("usernme")],
      ["await tx.insert(users, { username: 7 });", /Type 'number' is not assignable to type 'string'/],
      ["await tx.insertMany(emails, [{ email: 'a@x.io' }]);", missing("confirmed")],
      ["await tx.insertMany(users, [{ username: 'ada', confirmd: true }]);", misspelled("confirmd")],
      ["await tx.update(users, eq(users.id, 7), { usernme: 'ada' });", misspelled("usernme")],
      ["await tx.update(users, eq(users.id, 7), { username: 7 });", /Type 'number' is not assignable/],
      ["await cell.bulkInsert(emails, [{ email: 'a@x.io' }]);", missing("confirmed")],
      ["await cell.bulkInsert(users, [{ username: 'ada', confirmd: true }]);", misspelled("confirmd")],
      ["await cell.preflight((plan) => plan.insert(users, { id: 7 }));", missing("username")],
      ["await cell.preflight((plan) => plan.insert(users, { id: 7, usernme: 'a' }));", misspelled("usernme")],
      ["await cell.preflight((plan) => plan.update(users, user, { usernme: 'a' }));", misspelled("usernme")],
    ];
    const text = cases.map(([code]) => `\`\`\`ts\n${code}\n\`\`\`\n`).join("");
    const errors = new Map<number, string[]>();
    for (const [, line = "", error = ""] of compilerErrors(() =>
      compileExamples(project, examplesOf("docs/columns.md", text)),
    ).matchAll(/^\S*docs_columns_md_(\d+)\.ts\(\d+,\d+\): (.+)$/gm))
      errors.set(Number(line), [...(errors.get(Number(line)) ?? []), error]);
    for (const [at, [code, message]] of cases.entries())
      expect(errors.get(at * 3 + 2), code).toEqual([expect.stringMatching(message)]);
  });
});

describe("the build refuses", () => {
  const client: Entry = {
    name: "client",
    source: "src/users/client/index.ts",
    peers: [],
    bundles: [],
    runsOn: "any",
  };
  const cell: Entry = { ...client, name: "cell", source: "src/users/cell/index.ts" };

  /** Makes a repository with one entry. */
  const repositoryOf = ({ source }: Entry, text: string): string => {
    const folder = mkdtempSync(join(tmpdir(), "leasehold-sdk-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, dirname(source)), { recursive: true });
    writeFileSync(join(folder, source), text);
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    return folder;
  };

  test.each([
    [
      "a package that the entry must not bundle",
      client,
      'import { v7 } from "uuid"; export const id = v7();',
      "leasehold/client has uuid in it",
    ],
    [
      "one of Node's modules",
      client,
      'import { join } from "node:path"; export const a = join("a");',
      "leasehold/client imports node:path",
    ],
    [
      "a peer of other entries",
      cell,
      'import { sql } from "drizzle-orm"; export const a = sql;',
      "leasehold/cell imports drizzle-orm",
    ],
  ])("code with %s", async (_, entry, text, complaint) => {
    const repository = repositoryOf(entry, text);
    await expect(buildJavascript(repository, [entry], join(repository, "dist"))).rejects.toThrow(complaint);
  });

  test.each([
    [
      "a package that users do not have",
      'import type { Context } from "hono"; export type A = Context;',
      /^the types of leasehold\/client name hono \(types\//,
    ],
    [
      "features that Node 20 does not have",
      "export const a = Promise.withResolvers<string>();",
      /withResolvers/,
    ],
    ["the platform's globals", "export type A = DurableObjectState;", /DurableObjectState/],
  ])("types with %s", (_, text, complaint) => {
    const repository = repositoryOf(client, text);
    expect(() => buildTypes(repository, [client], join(repository, "dist"))).toThrow(complaint);
  });

  test("an entry without a source", async () => {
    const repository = repositoryOf(client, "");
    await expect(buildSdk(repository, [client, cell], join(repository, "dist"))).rejects.toThrow(
      /^leasehold\/cell: there is no src\/users\/cell\/index\.ts$/,
    );
  });
});
