/** `npm run check:formats` notices every change that code of the last release cannot work with. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { apiDifferences } from "../../scripts/formats/api.ts";
import {
  describeToday,
  differencesFrom,
  newestVersion,
  readDescription,
  writeDescription,
} from "../../scripts/formats/description.ts";
import type { Difference } from "../../scripts/formats/difference.ts";
import { reportOf } from "../../scripts/formats/report.ts";
import { kinds } from "../../scripts/formats/sample-kinds.ts";
import { sampleDifferences } from "../../scripts/formats/samples.ts";
import { tableDifferences, type Tables } from "../../scripts/formats/tables.ts";
import { typeDifferences, type Types } from "../../scripts/formats/types.ts";

const release = await describeToday();
const none = { types: [], tables: [], api: [], samples: [] };

const textOf = ({ what, fault }: Difference): string => `${what}: ${fault}`;

test("a description says the same after it was written and read, and equals this code", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const version of ["0.9.0", "0.10.0"]) writeDescription(join(folder, version), release);
  expect(newestVersion(folder)).toBe("0.10.0");
  expect(newestVersion(folder, "0.10.0")).toBe("0.9.0");
  const read = readDescription(join(folder, "0.10.0"));
  expect(read).toEqual(release);
  expect(await differencesFrom(read)).toEqual(none);
});

describe("types:", () => {
  const MESSAGES = "src/coordinator/kernel/messages.d.ts";
  const SHAPES = "scripts/formats/shapes.d.ts";
  type Edit = [from: string | RegExp, to: string, file?: string];

  /** Returns the types with other texts in their files. */
  function edited(...edits: Edit[]): Types {
    const declarations = { ...release.types.declarations };
    for (const [from, to, given] of edits) {
      const file = given ?? Object.keys(declarations).find((each) => declarations[each]?.search(from) !== -1);
      const text = declarations[file ?? ""] ?? "";
      declarations[file ?? ""] = text.replace(from, to);
      if (declarations[file ?? ""] === text) throw new Error(`${file ?? "no file"} has ${from}`);
    }
    return { levels: release.types.levels, declarations };
  }

  const compared = (today: Types, before = release.types): string[] =>
    typeDifferences(before, today).map(textOf);

  /** A change within the declaration of a type. */
  const within = (type: string, from: string, to: string): Edit => [
    new RegExp(`((?:interface|type) ${type}\\b[^}]*?)${from.replaceAll(/[?[\]|]/g, "\\$&")}`),
    `$1${to}`,
  ];

  test("an optional field, a reason of refusals and a readonly array are no difference", () => {
    const today = edited(
      within("BeginRequest", "lease: string;", "lease: string; extra?: string;"),
      within("Report", "through: number;", "through: number; extra?: string;"),
      within("BeginRequest", "ops: Op[]", "ops: readonly Op[]"),
      ["type Reason =", 'type Reason = "NEW" |', "src/coordinator/kernel/refusal.d.ts"],
    );
    expect(compared(today)).toEqual([]);
  });

  test("a method may be added, but not removed, and its level must stay", () => {
    const { levels, declarations } = release.types;
    const { "ledger.begin": begin, ...rest } = levels;
    const without = { levels: rest, declarations };
    expect(compared(release.types, without)).toEqual([]);
    expect(compared(without)).toEqual(["ledger.begin: it was removed"]);
    expect(begin).toBe("call, tells");
    expect(compared({ levels: { ...levels, "ledger.begin": "read, tells" }, declarations })).toEqual([
      "ledger.begin: its level was `call, tells` and is `read, tells`",
    ]);
  });

  test("fields that were added, renamed, removed or changed are differences", () => {
    const found = compared(
      edited(
        within("BeginRequest", "waitMs?:", "waitsMs?:"),
        within("DecideRequest", "requestId:", "requestID:"),
        within("RenewRequest", "reason: string", "reason: string; extra: string"),
        within("ListPeriods", "limit: number", "limit: number; one: string; two: string"),
        within("GiveUp", "call: string", "call: number"),
        within("EndRead", "read: string", "read?: string"),
        within("SetState", "stateVersion: number;", ""),
        within("WaitState", '"offered"', '"refused" | "offered"'),
        within("FoundNames", "next: BucketKey | null", "next: BucketKey"),
        within("Period", "cell: string;", ""),
        [
          "type StoredOp = [",
          "type StoredOp = [ extra: string,",
          "src/coordinator/kernel/ledger/payload.d.ts",
        ],
      ),
    );
    const here = "this code cannot read its";
    const there = "code of the release cannot read its";
    for (const text of [
      "ledger.begin: its message has lost a field: `waitMs` is missing",
      `ledger.decide: ${there} message: \`requestId\` is missing`,
      `ledger.decide: ${here} message of the release: \`requestID\` is missing`,
      `ledger.renew: ${here} message of the release: \`extra\` is missing`,
      `shard.listPeriods: ${here} message of the release: \`one\` and \`two\` is missing`,
      `ledger.giveUp: ${there} message: \`call\`: Type 'number' is not assignable to type 'string'.`,
      `ledger.endRead: ${there} message: \`read\` may be missing`,
      `ledger.setState: ${there} message: \`stateVersion\` is missing`,
      `shard.wait: ${there} value: \`state\`: Type '"refused"' is not assignable to type`,
      `shard.findNames: ${here} value of the release: \`next\`: Type 'null' is not assignable to type`,
      `shard.listPeriods: ${there} value: \`periods.cell\` is missing`,
      `storedByLedgers.op: ${there} value: `,
    ])
      expect(found).toContainEqual(expect.stringContaining(text));
  });

  test("a field of every message that was removed is a difference of every method", () => {
    const found = compared(edited(within("Envelope", "seen?: HistoryPoint;", "")));
    const methods = Object.values(release.types.levels).filter((level) => level !== null);
    expect(found).toHaveLength(methods.length);
    expect(found).toContain("shard.exchange: its message has lost a field: `seen` is missing");
  });

  test("nothing passes because a type is `any`, `unknown` or `never`", () => {
    const vague = edited(
      within("DecideRequest", "requestId: string", "requestId: any"),
      within("RenewRequest", "reason: string", "reason: unknown"),
      within("GiveUp", "call: string", "call: never"),
      [/\bendRead: [^;]*;/, "endRead: any;", SHAPES],
      [/\bauthorize: [^;]*;/, "authorize: { types?: unknown };", SHAPES],
      [/\bwait: [^;]*;/, "wait: { types?: never };", SHAPES],
      [/\bleave: [^;]*;/, "leave: { types?: { message: any; value: any } };", SHAPES],
    );
    for (const found of [compared(vague), compared(release.types, vague), compared(vague, vague)])
      for (const name of "decide renew giveUp endRead authorize"
        .split(" ")
        .map((each) => `ledger.${each}`)
        .concat("shard.wait", "shard.leave"))
        expect(found).toContainEqual(expect.stringContaining(`${name}: `));
  });

  test.each([MESSAGES, SHAPES])("nothing passes without %s", (file) => {
    const { [file]: _, ...declarations } = release.types.declarations;
    const partial = { ...release.types, declarations };
    for (const found of [compared(partial), compared(partial, partial)])
      expect(found.join()).toContain("Cannot find module");
  });
});

describe("tables:", () => {
  const withSteps = (what: string, change: (steps: unknown[]) => unknown[]): Tables => ({
    ...release.tables,
    steps: { ...release.tables.steps, [what]: change([...(release.tables.steps[what] ?? [])]) },
  });
  const compared = (today: Tables): string[] => tableDifferences(release.tables, today).map(textOf);

  test("steps, statements and migrations may be added", () => {
    expect(compared(withSteps("shard", (steps) => [...steps, ["CREATE TABLE more (n INTEGER)"]]))).toEqual(
      [],
    );
    expect(compared(withSteps("shard", (steps) => [...steps, { format: 2, statements: [] }]))).toEqual([]);
    expect(compared(withSteps("a cell on MySQL", (steps) => [...steps, "CREATE TABLE more"]))).toEqual([]);
    const migrations = { ...release.tables.migrations, "9999_later.sql": "0" };
    expect(compared({ ...release.tables, migrations })).toEqual([]);
  });

  test("a step of an object that writes all rows is a difference", () => {
    const statement = "CREATE INDEX claim_by_uuid ON claim (uuid)";
    const copy = ["CREATE TABLE more AS SELECT * FROM claim"];
    expect(compared(withSteps("shard", (steps) => [...steps, copy]))).toHaveLength(1);
    const fault = `tables of shard: it slows a start down: \`${statement}\``;
    for (const step of [[statement], { format: 2, statements: ["DROP TABLE claim", statement] }])
      expect(compared(withSteps("shard", (steps) => [...steps, step]))).toEqual([fault]);
    const column = "ALTER TABLE claim ADD COLUMN more INTEGER NOT NULL DEFAULT 0";
    expect(compared(withSteps("shard", (steps) => [...steps, [column]]))).toEqual([]);
  });

  test("a statement that has changed, was added to a step or was removed is a difference", () => {
    const changed = withSteps("shard", ([first = [], ...more]) => [
      (first as string[]).map((each) => each.replace("uuid TEXT", "id TEXT")),
      ...more,
    ]);
    expect(compared(changed)).toEqual([
      expect.stringMatching(
        /^tables of shard: step 1 has changed: `CREATE TABLE claim .* uuid TEXT .*` is now/,
      ),
    ]);
    const longer = withSteps("ledger", ([first = [], ...more]) => [[...(first as string[]), "NEW"], ...more]);
    expect(compared(longer)).toEqual(["tables of ledger: step 1 has changed: `nothing` is now `NEW`"]);
    expect(compared(withSteps("directory", () => []))).toEqual(["tables of directory: step 1 was removed"]);
    const statement = withSteps("a cell on PostgreSQL", (steps) => ["CREATE TABLE other", ...steps.slice(1)]);
    expect(compared(statement).join()).toMatch(/^tables of a cell on PostgreSQL: step 1 has changed/);
  });

  test("a migration that was edited or removed is a difference", () => {
    const [file = ""] = Object.keys(release.tables.migrations);
    const { [file]: _, ...migrations } = release.tables.migrations;
    expect(compared({ ...release.tables, migrations })).toEqual([`migrations/${file}: it was removed`]);
    const edited = { ...migrations, [file]: "0" };
    expect(compared({ ...release.tables, migrations: edited })).toEqual([
      `migrations/${file}: it was changed`,
    ]);
  });
});

describe("the API:", () => {
  // oxlint-disable-next-line typescript/no-explicit-any -- a document of JSON, to be changed anywhere
  type Document = any;

  function compared(change: (today: Document) => void): string[] {
    const today = structuredClone(release.api);
    change(today);
    return apiDifferences(release.api, today).map(textOf);
  }
  const schemas = (document: Document): Document => document.components.schemas;
  const CELLS = "/v1/admin/cells";

  test.each<[string, (today: Document) => void]>([
    ["an optional field of a request", (to) => (schemas(to).NewCell.properties.more = { type: "string" })],
    ["a field of an answer", (to) => (schemas(to).Cell.properties.more = { type: "string" })],
    ["a value of an answer", (to) => schemas(to).Problem.properties.code.enum.push("NEW")],
    ["a path", (to) => (to.paths["/v1/more"] = to.paths[CELLS])],
    [
      "an optional parameter",
      (to) => to.paths[CELLS].get.parameters.push({ name: "more", in: "query", schema: {} }),
    ],
    ["a role", (to) => to.paths[CELLS].post["x-roles"].push("viewer")],
    ["a larger limit", (to) => (schemas(to).NewCell.properties.name.maxLength = 100_000)],
  ])("%s may be added", (_, change) => {
    expect(compared(change)).toEqual([]);
  });

  test.each<[string, (today: Document) => void, string]>([
    ["a path", (to) => delete to.paths[CELLS], `GET ${CELLS}: it was removed`],
    ["a method", (to) => delete to.paths[CELLS].post, `POST ${CELLS}: it was removed`],
    [
      "a status",
      (to) => delete to.paths[CELLS].post.responses["201"],
      `POST ${CELLS}: the status 201 was removed`,
    ],
    [
      "a field of an answer",
      (to) => delete schemas(to).Cell.properties.address,
      `POST ${CELLS}: \`201.cell.address\` was removed`,
    ],
    [
      "the promise of a field",
      (to) => schemas(to).Cell.required.pop(),
      `POST ${CELLS}: \`201.cell\` may lack the field`,
    ],
    [
      "a field of a request",
      (to) => delete schemas(to).NewCell.properties.name,
      `POST ${CELLS}: \`body.name\` was removed`,
    ],
    ["a parameter", (to) => to.paths[CELLS].get.parameters.pop(), `GET ${CELLS}: the query parameter`],
    [
      "a value of a request",
      (to) => schemas(to).NewKey.properties.role.enum.shift(),
      'POST /v1/admin/keys: `body.role` has lost "',
    ],
    ["a role", (to) => to.paths[CELLS].post["x-roles"].pop(), "may no longer call it"],
    [
      "the freedom of a field",
      (to) => (schemas(to).NewCell.properties.name.maxLength = 1),
      `POST ${CELLS}: \`body.name\` has a narrower maxLength`,
    ],
  ])("%s that was removed is a difference", (_, change, text) => {
    expect(compared(change).join("\n")).toContain(text);
  });

  test.each<[string, (today: Document) => void, string]>([
    [
      "a required field",
      (to) => schemas(to).NewCell.required.push("more"),
      `POST ${CELLS}: \`body\` needs the field \`more\``,
    ],
    [
      "a required parameter",
      (to) => to.paths[CELLS].get.parameters.push({ name: "more", in: "query", required: true, schema: {} }),
      `GET ${CELLS}: the new query parameter \`more\` is required`,
    ],
    [
      "null in an answer",
      (to) => (schemas(to).Cell.properties.name.type = ["string", "null"]),
      `POST ${CELLS}: \`201.cell.name\` may be null`,
    ],
  ])("%s that was added is a difference", (_, change, text) => {
    expect(compared(change).join("\n")).toContain(text);
  });
});

describe("samples:", () => {
  const { key } = kinds;
  if (key === undefined) throw new Error("there is no sample of a key");

  test("another kind may be added", async () => {
    expect(await sampleDifferences(release.samples, { ...kinds, more: key })).toEqual([]);
  });

  test("a value that is written or read in another way, or not at all, is a difference", async () => {
    const fault = async (changed: Partial<typeof key>): Promise<string> =>
      (await sampleDifferences(release.samples, { ...kinds, key: { ...key, ...changed } }))
        .map(textOf)
        .join("\n");
    expect(await fault({ make: () => "lhk2_x" })).toMatch(
      /^key: this code writes `lhk2_x`, and the release `lhk_/,
    );
    expect(await fault({ read: () => ({ ok: false }) })).toMatch(
      /^key: this code reads it as \{"ok":false\}/,
    );
    const refusing = (): never => {
      throw new Error("the version is not known");
    };
    expect(await fault({ read: refusing })).toBe("key: this code cannot read it: the version is not known");
    const { key: _, ...others } = kinds;
    expect(await sampleDifferences(release.samples, others)).toEqual([
      { what: "key", fault: "it was removed" },
    ]);
  });
});

test("the report names what has the same fault in one line, and leaves out what was accepted", () => {
  const types = ["a.x", "a.y", "b.x", "b.y"].map((what) => ({ what, fault: "`n` is missing" }));
  const line = "a.x, a.y and 2 more: `n` is missing";
  const report = reportOf("0.2.0", { ...none, types }, {});
  expect(report).toContain(`\n${line}\nAdd an optional field`);
  expect(reportOf("0.2.0", { ...none, types }, { [line]: "nobody writes it" })).toBe("");
  expect(reportOf("0.2.0", none, { [line]: "nobody writes it" })).toContain(
    `accepted.json has a difference that is not there: ${line}`,
  );
  expect(reportOf("0.2.0", none, {})).toBe("");
});
