/** The npm package that scripts/sdk builds. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../scripts/free-port.ts";
import { buildSdk } from "../../scripts/sdk/build.ts";
import { clientSize } from "../../scripts/sdk/client-size.ts";
import { compileAgainstSdk } from "../../scripts/sdk/compile.ts";
import {
  importSdk,
  installSdk,
  leaseWithSdk,
  linkPeers,
  packSdk,
  runProgram,
} from "../../scripts/sdk/consumer.ts";
import { entries, entriesOf, type Entry } from "../../scripts/sdk/entries.ts";
import { buildJavascript } from "../../scripts/sdk/javascript.ts";
import { allExamples, compileExamples, examplesOf, withoutExample } from "../../scripts/sdk/examples.ts";
import { lintSdk, resolveSdk } from "../../scripts/sdk/lint.ts";
import { changelogOf } from "../../scripts/sdk/documents.ts";
import { buildTypes } from "../../scripts/sdk/types.ts";

/** The limit for `leasehold/client` in a web page. Raise it only for features that are worth it. */
const CLIENT_GZIPPED_BYTES = 13_600;
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

const newFolder = (): string => mkdtempSync(join(tmpdir(), "leasehold-sdk-"));

describe("the package", () => {
  let scratch: string;
  let folder: string;
  let project: string;
  let tarball: string;

  beforeAll(async () => {
    scratch = newFolder();
    folder = join(scratch, "sdk");
    project = join(scratch, "consumer");
    await buildSdk(root, entries, folder);
    tarball = packSdk(folder, scratch);
    installSdk(tarball, project);
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  test("passes publint and attw", async () => {
    await lintSdk(folder, tarball);
    resolveSdk(root, tarball);
  });

  test("has no dependencies, and only optional peers", () => {
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, object>;
    expect(manifest).not.toHaveProperty("dependencies");
    expect(Object.keys(manifest["peerDependenciesMeta"] ?? {})).toEqual(
      Object.keys(manifest["peerDependencies"] ?? {}),
    );
    expect(Object.keys(manifest["exports"] ?? {})).toEqual([
      ...entries.map(({ name }) => `./${name}`),
      "./package.json",
    ]);
  });

  test.each(entries)("$name names each of its exports", ({ source }) => {
    expect(readFileSync(join(root, source), "utf8")).not.toMatch(/export (type )?\*/);
  });

  test("has the program, with everything that it needs", async () => {
    expect(runProgram(project, "--version")).toMatch(/^\d+\.\d+\.\d+$/);
    expect(runProgram(project, "lookup", "--help")).toContain("leasehold lookup ada");
    for (const name of ["dev", "bench", "watch"])
      expect(runProgram(project, name, "--help")).toContain(`Usage: leasehold ${name}`);
    const port = String(await freePort());
    // The seed is refused once the server runs, so the package has all of the server.
    const dev = ["dev", "--temporary", "--no-save", "--port", port, "--seed", "0"];
    expect(() => runProgram(project, ...dev)).toThrow("--seed must be from 1 to 10000");
    const licenses = readFileSync(join(folder, "THIRD_PARTY_LICENSES.md"), "utf8");
    for (const name of ["commander", "hono"]) expect(licenses).toContain(`## ${name}`);
  });

  test("leases a name without peers, and compiles in every setup", () => {
    expect(leaseWithSdk(project)).toBe("COMMITTED true");
    linkPeers(root, project);
    compileAgainstSdk(project, entries);
  });

  test("exports the documented values and no internals", () => {
    linkPeers(root, project);
    expect(importSdk(project, entries)).toEqual({
      "leasehold/client": [
        "AlreadyClaimedError",
        "CancelledError",
        "CellDrainingError",
        "CellFrozenError",
        "ChangesPrunedError",
        "ClaimLeasedError",
        "ClaimMismatchError",
        "FailedPreconditionError",
        "InvalidArgumentError",
        "LeaseCommittedError",
        "LeaseIdReusedError",
        "LeaseRolledBackError",
        "LeaseholdError",
        "NotFoundError",
        "NotOwnerError",
        "PermissionDeniedError",
        "ReportPrunedError",
        "ResourceExhaustedError",
        "StaleEpochError",
        "TimeoutError",
        "UnauthenticatedError",
        "UnavailableError",
        "createClient",
        "fencedWrite",
        "isLeaseholdError",
      ],
      "leasehold/cell": [
        "AlreadyClaimedError",
        "BulkError",
        "CancelledError",
        "CellDrainingError",
        "CellFrozenError",
        "ChangesPrunedError",
        "ClaimLeasedError",
        "ClaimMismatchError",
        "ClientLeases",
        "FailedPreconditionError",
        "InvalidArgumentError",
        "InvalidNameError",
        "LeaseCommittedError",
        "LeaseIdReusedError",
        "LeaseRolledBackError",
        "LeaseholdError",
        "LocalCommitUnknownError",
        "NotFoundError",
        "NotInstalledError",
        "NotOwnerError",
        "NotSavedError",
        "PermissionDeniedError",
        "ReconcileAborted",
        "ReportPrunedError",
        "ResourceExhaustedError",
        "StaleEpochError",
        "TimeoutError",
        "UnauthenticatedError",
        "UnavailableError",
        "VerificationAborted",
        "claimable",
        "createCell",
        "formatReport",
        "isDecision",
        "isLeaseholdError",
        "mergePositions",
        "misdirected",
        "misdirectedResponse",
        "positionCookie",
        "reconcile",
        "toValidationErrors",
      ],
      "leasehold/cell/postgres": [
        "ledgerHistory",
        "migration",
        "outstandingLeases",
        "postgres",
        "verificationProgress",
        "verificationQueue",
      ],
      "leasehold/cell/mysql": [
        "ledgerHistory",
        "migration",
        "mysql",
        "outstandingLeases",
        "verificationProgress",
        "verificationQueue",
      ],
      "leasehold/cell/pg": ["condition", "migration", "pg", "table"],
      "leasehold/cell/mysql2": ["condition", "migration", "mysql2", "table"],
      "leasehold/cell/kysely": [
        "kyselyMysql",
        "kyselyPostgres",
        "kyselyTables",
        "mysqlMigration",
        "postgresMigration",
      ],
      "leasehold/cell/prisma": ["migration", "prismaPostgres", "prismaTables"],
      "leasehold/cell/adapter": ["NamedTable", "condition", "mysqlDatabase", "postgresDatabase", "table"],
      "leasehold/cell/conformance": ["cellConformance"],
      "leasehold/router": [
        "POSITION_COOKIE",
        "ProxyMetrics",
        "RouterMetrics",
        "RoutesUnavailableError",
        "RulesetError",
        "chooseCell",
        "classify",
        "compileRuleset",
        "createProxy",
        "createRoutes",
        "formatPositions",
        "mergePositions",
        "parsePositions",
        "positionCookie",
        "positionsFromCookie",
        "workersCache",
      ],
      "leasehold/testing": ["startTestCoordinator"],
    });
  });

  test("compiles every example in the sources and the docs", () => {
    linkPeers(root, project);
    compileExamples(project, allExamples(root));
  });

  test("does not compile a broken example", () => {
    linkPeers(root, project);
    const text = '```ts\nimport { createClient } from "leasehold/client";\ncreateClient({ uri: 7 });\n```\n';
    expect(() => compileExamples(project, examplesOf("docs/broken.md", text))).toThrow(
      /docs_broken_md_2\.ts\(2,\d+\): error TS\d+: .*'uri'/,
    );
  });

  test("the compiler names the column that is missing or misspelled", () => {
    linkPeers(root, project);
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

  test("has a small client", async () => {
    const { gzippedBytes } = await clientSize(project);
    expect(gzippedBytes).toBeLessThan(CLIENT_GZIPPED_BYTES);
  });
});

describe("examples", () => {
  const examples = allExamples(root);

  test.each(entries)("every function of leasehold/$name has one", async ({ source }) => {
    const values = (await import(join(root, source))) as Record<string, unknown>;
    expect(withoutExample(values, examples)).toEqual([]);
  });

  test("a function without one is found", () => {
    expect(withoutExample({ createClient: () => {}, LeaseholdError: Error }, [])).toEqual(["createClient"]);
  });
});

describe("the build refuses", () => {
  const client: Entry = {
    name: "client",
    source: "src/client/index.ts",
    peers: [],
    bundles: [],
    runsOn: "any",
  };
  const cell: Entry = { ...client, name: "cell", source: "src/cell/index.ts" };

  /** Makes a repository with one entry. */
  const repositoryOf = ({ source }: Entry, text: string): string => {
    const folder = newFolder();
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
      /^leasehold\/cell: there is no src\/cell\/index\.ts$/,
    );
  });
});

describe("the list of entries", () => {
  const sources = Object.fromEntries(entries.map(({ name, source }) => [`./${name}`, `./${source}`]));

  test("comes from package.json", () => {
    expect(entriesOf(sources)).toEqual(entries);
  });

  test("refuses an export without rules, and rules without an export", () => {
    expect(() => entriesOf({ ...sources, "./other": "./src/other.ts" })).toThrow(
      "scripts/sdk/entries.ts has no rules for leasehold/other",
    );
    const { "./testing": _, ...fewer } = sources;
    expect(() => entriesOf(fewer)).toThrow("package.json has no `exports` for testing");
  });
});

test("the package's change log has every version, with the sections for its users", () => {
  const operators = "### For operators\n\n- No.\n\n";
  const text =
    "# Changelog\n\nWords.\n\n## 2.0.0\n\n" +
    `${operators}### For cell authors\n\n- Yes.\n\n## 1.0.0\n\nThe first.\n`;
  expect(changelogOf(text)).toBe(
    "# Changelog\n\nWords.\n\n## 2.0.0\n\n### For cell authors\n\n- Yes.\n\n## 1.0.0\n\nThe first.\n",
  );
});
