/** Error names, codes and the guard: in minified bundles, in two copies of the package, and in the docs. */
import { build } from "esbuild";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type * as cell from "../../../src/users/cell/index.ts";
import * as client from "../../../src/users/client/index.ts";
import type { KnownErrorCode, LeaseholdErrorName } from "../../../src/users/client/index.ts";
import type { Reason } from "../../../src/coordinator/kernel/refusal.ts";

type Package = typeof client & typeof cell;

const root = join(import.meta.dirname, "../../..");

/** The compiler checks that these are all codes of the union, and no others. */
const codes = Object.keys({
  INVALID_ARGUMENT: true,
  UNAUTHENTICATED: true,
  PERMISSION_DENIED: true,
  NOT_FOUND: true,
  ALREADY_EXISTS: true,
  FAILED_PRECONDITION: true,
  ABORTED: true,
  RESOURCE_EXHAUSTED: true,
  UNAVAILABLE: true,
  DEADLINE_EXCEEDED: true,
  CANCELLED: true,
  BULK_FAILED: true,
  UNKNOWN_COMMIT: true,
  NOT_SAVED: true,
  NOT_INSTALLED: true,
  NOT_STORED: true,
  WRONG_TABLE: true,
  TRANSACTION_ENDED: true,
} satisfies Record<KnownErrorCode, true>);

const names = Object.keys({
  LeaseholdError: true,
  InvalidArgumentError: true,
  UnauthenticatedError: true,
  PermissionDeniedError: true,
  NotFoundError: true,
  AlreadyClaimedError: true,
  ClaimLeasedError: true,
  FailedPreconditionError: true,
  NotOwnerError: true,
  ClaimMismatchError: true,
  StaleEpochError: true,
  LeaseRolledBackError: true,
  LeaseCommittedError: true,
  LeaseIdReusedError: true,
  CellFrozenError: true,
  CellDrainingError: true,
  ReportPrunedError: true,
  ChangesPrunedError: true,
  ResourceExhaustedError: true,
  UnavailableError: true,
  TimeoutError: true,
  CancelledError: true,
  InvalidNameError: true,
  LocalCommitUnknownError: true,
  NotSavedError: true,
  NotInstalledError: true,
  BulkError: true,
} satisfies Record<LeaseholdErrorName, true>);

const origin = { table: "users", attribute: "username", id: "1" } as const;

/** Makes an error of every exported class. */
function errorsOf(copy: Package): Map<string, client.LeaseholdError> {
  const errors = new Map<string, client.LeaseholdError>([
    ["InvalidNameError", new copy.InvalidNameError(origin, "is empty")],
    ["LocalCommitUnknownError", new copy.LocalCommitUnknownError(new Error("lost"), undefined)],
    ["NotSavedError", new copy.NotSavedError()],
    ["NotInstalledError", new copy.NotInstalledError("leasehold_ledger_history", new Error("no table"))],
    ["BulkError", new copy.BulkError(new Error("full"), { recordsDone: 1, chunksDone: 1 })],
  ]);
  const classes = Object.keys(client).filter((name) => /^[A-Z]\w+Error$/.test(name));
  for (const name of classes)
    errors.set(name, new copy[name as "LeaseholdError"]("a message", { code: "ABORTED" }));
  return errors;
}

describe("in two minified copies of the package", () => {
  let folder: string;
  let copies: readonly [Package, Package];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "leasehold-errors-"));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const load = async (name: string): Promise<Package> => {
      const outfile = join(folder, `${name}.mjs`);
      await build({
        stdin: {
          contents: 'export * from "./src/users/client/index.ts"; export * from "./src/users/cell/index.ts";',
          resolveDir: root,
        },
        bundle: true,
        minify: true,
        format: "esm",
        platform: "node",
        target: "es2022",
        external: ["drizzle-orm"],
        outfile,
        logLevel: "silent",
      });
      return (await import(outfile)) as Package;
    };
    copies = [await load("one"), await load("two")];
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("every class keeps its name", () => {
    const errors = errorsOf(copies[0]);
    expect([...errors.keys()].toSorted()).toEqual(names.toSorted());
    for (const [name, error] of errors) {
      expect(error.name).toBe(name);
      expect(`${error}`).toMatch(new RegExp(`^${name}: `));
      expect(error.constructor.name, "the bundle is not minified").not.toBe(name);
    }
  });

  it("each copy recognises the errors of the other", () => {
    const [one, two] = copies;
    for (const error of errorsOf(one).values()) {
      expect(error).not.toBeInstanceOf(two.LeaseholdError);
      expect(two.isLeaseholdError(error)).toBe(true);
    }
    expect(two.isLeaseholdError(new Error("other"))).toBe(false);
  });

  it("an error of one copy keeps its code and outcome as the cause of a bulk error of the other", () => {
    const [one, two] = copies;
    const cause = new one.TimeoutError("late", { code: "DEADLINE_EXCEEDED", outcomeKnown: false });
    expect(new two.BulkError(cause, { recordsDone: 0, chunksDone: 0 })).toMatchObject({
      code: "DEADLINE_EXCEEDED",
      outcomeKnown: false,
    });
  });
});

const filesOf = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, folder, name), "utf8"));

it("the sources throw only codes of the union", () => {
  const thrown = ["src/users/client", "src/users/cell"]
    .flatMap(filesOf)
    .flatMap((text) => [...text.matchAll(/\bcode: "([A-Z_]+)"/g)].map(([, code = ""]) => code));
  expect(thrown).not.toEqual([]);
  expect(codes).toEqual(expect.arrayContaining(thrown));
});

describe("docs/reference/sdk.md", () => {
  const page = readFileSync(join(root, "docs/reference/sdk.md"), "utf8");
  const [, section = ""] = /^## Errors\n(.+?)(?=^## |$(?![^]))/ms.exec(page) ?? [];
  const quoted = new Set([...section.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word));
  /** Reasons that the section mentions beside the codes. */
  const reasons: ReadonlySet<string> = new Set([
    "LEASE_ROLLED_BACK",
    "LEASE_COMMITTED",
    "LEASE_ID_REUSED",
    "CELL_FROZEN",
    "CELL_DRAINING",
    "REPORT_PRUNED",
    "CHANGES_PRUNED",
    "NO_VERIFICATION_SLOT",
  ] satisfies Reason[]);

  it("lists every error class, and no other", () => {
    const listed = [...quoted].filter((word) => /^[A-Z]\w+Error$/.test(word));
    expect(listed.toSorted()).toEqual(names.toSorted());
  });

  it("lists every code, and no other", () => {
    const listed = [...quoted].filter(
      (word) => /^[A-Z]+(_[A-Z]+)*$/.test(word) && !reasons.has(word) && word !== "TOO_MANY_BEGINS_HERE",
    );
    expect(listed.toSorted()).toEqual(codes.toSorted());
  });
});
