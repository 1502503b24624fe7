/** The npm package that scripts/sdk builds, as its users get it. sdk.deep.test.ts has the slower checks. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { clientSize } from "../../scripts/sdk/client-size.ts";
import { importSdk, leaseWithSdk, linkPeers, runProgram } from "../../scripts/sdk/consumer.ts";
import { entries, entriesOf } from "../../scripts/sdk/entries.ts";
import { allExamples, compileExamples, withoutExample } from "../../scripts/sdk/examples.ts";
import { changelogOf } from "../../scripts/sdk/documents.ts";
import { INSTALL_MS, PackedSdk } from "./packed-sdk.ts";

/** The limit for `leasehold/client` in a web page. Raise it only for features that are worth it. */
const CLIENT_GZIPPED_BYTES = 13_800;
const root = join(import.meta.dirname, "../..");

describe("the package", () => {
  let packed: PackedSdk;
  let project: string;

  beforeAll(async () => {
    packed = await PackedSdk.install();
    ({ project } = packed);
  }, INSTALL_MS);
  afterAll(() => packed.remove());

  test("has no dependencies, and only optional peers", () => {
    const manifest = JSON.parse(readFileSync(join(packed.folder, "package.json"), "utf8")) as Record<
      string,
      object
    >;
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
    const licenses = readFileSync(join(packed.folder, "THIRD_PARTY_LICENSES.md"), "utf8");
    for (const name of ["commander", "zod"]) expect(licenses).toContain(`## ${name}`);
  });

  test("leases a name without peers", () => {
    expect(leaseWithSdk(project)).toBe("COMMITTED true");
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
      "leasehold/router/node": ["toNodeListener"],
      "leasehold/testing": ["startTestCoordinator"],
    });
  });

  test("compiles every example in the sources and the docs", () => {
    linkPeers(root, project);
    compileExamples(project, allExamples(root));
  });

  test("has a small client", async () => {
    const { gzippedBytes } = await clientSize(project);
    expect(gzippedBytes).toBeLessThanOrEqual(CLIENT_GZIPPED_BYTES);
    const limit = `at most ${CLIENT_GZIPPED_BYTES.toLocaleString("en-US")} bytes`;
    expect(readFileSync(join(root, "docs/reference/sdk.md"), "utf8")).toContain(limit);
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
