/** `leasehold conformance`: what it runs, what it prints, and that it leaves nothing behind. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { spoil, startCommandLine, type CommandLine, type RunOptions } from "./command-line.ts";

interface Document {
  cell: string;
  other_cell: string | null;
  types: object;
  prefix: string;
  seed: number;
  ok: boolean;
  interrupted: boolean;
  rules: { rule: string; result: string; failed: number }[];
  checks: { id: string; result: string; reason: string | null }[];
  left: string[];
}

const withCell = (line: CommandLine, more: RunOptions["env"] = {}): RunOptions => ({
  env: { LEASEHOLD_KEY: line.coordinator.keys.cell("1"), ...more },
});

/** Writes a key into a file that ends with the test. */
function fileOf(key: string): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "key");
  writeFileSync(file, `${key}\n`);
  return file;
}

const urlOf = (url: string | URL | Request): string => (url instanceof Request ? url.url : url.toString());

const FEW = ["--only", "C4", "begin/replay"];

test("the key of a cell is enough, and a table by rule says what passed", async () => {
  const line = await startCommandLine();
  const { code, out, err } = await line.run(["conformance", ...FEW], withCell(line));
  expect(code).toBe(0);
  expect(out).toBe(
    [
      "RULE  RESULT  PASSED  FAILED  SKIPPED",
      "B2    passed       1       0        0",
      "C1    passed       1       0        0",
      "C4    passed       2       0        0",
      "",
    ].join("\n"),
  );
  expect(err).toMatch(/^Names begin with conformance-[\da-f]{8}-, in cell 1. The seed is \d+\.\n/);
  expect(err).toContain("3 checks passed, 0 failed, 0 skipped.\n");
  expect(err).toContain("All names were given up: 2 claims, and 0 open leases.\n");
  const changed = line.sent.filter(({ method, path }) => method !== "GET" && path.startsWith("/v1/admin"));
  expect(changed).toEqual([]);
});

test("keys come from files or variables, and are never shown", async () => {
  const line = await startCommandLine();
  const { keys } = line.coordinator;
  const args = ["conformance", "--key", fileOf(keys.cell("2")), "--other-key", fileOf(keys.cell("1"))];
  const env = { LEASEHOLD_KEY: undefined, LEASEHOLD_ROUTER_KEY: keys.router };
  const operator = ["--operator-key", fileOf(keys.operator)];
  const ran = await line.run([...args, ...operator, "--only", "B2", "C5", "--json"], { env });
  const document = JSON.parse(ran.out) as Document;
  expect(document).toMatchObject({ cell: "2", other_cell: "1", ok: true, interrupted: false, left: [] });
  expect(document.checks.filter(({ result }) => result !== "passed")).toEqual([]);
  expect(ran.out + ran.err).not.toContain("lhk_");
  const given = await line.run(["conformance", "--key", keys.cell("1"), ...FEW], { env });
  expect(given.code).toBe(0);
  expect(given.err).toContain("--key has the key itself, which other users of this machine can read.");
  expect(given.out + given.err).not.toContain("lhk_");
});

test.each<[string, string[], string, string?]>([
  ["a rule without checks", ["--only", "B99"], "--only B99: there is no check of this rule"],
  ["a prefix of others", ["--prefix", "a-"], "the prefix must be `conformance-`"],
  ["a prefix of others", ["--clean-up", "conformance-"], "the prefix must be `conformance-`"],
  ["a prefix that may begin another", ["--prefix", "conformance-a-2-"], "the prefix must be `conformance-`"],
  ["a file that is none", ["--other-key", "/nowhere"], "--other-key must be a file with a key"],
  ["a cell that is not that of the key", ["--cell", "2"], "so leave out --cell"],
  ["a seed that is none", ["--seed", "x"], "It must be a whole number from 0 to 4294967295."],
  [
    "the key of an operator",
    [],
    "--key must be the key of a cell; this is one of the role operator",
    "operator",
  ],
])("%s is refused, and nothing is sent: 2", async (_, args, sentence, role = "cell") => {
  const line = await startCommandLine();
  const { code, err } = await line.run(
    ["conformance", ...args],
    role === "cell" ? withCell(line) : undefined,
  );
  expect({ code, sent: line.sent }).toEqual({ code: 2, sent: [] });
  expect(err).toContain(sentence);
});

test("a second key of the same cell is refused", async () => {
  const line = await startCommandLine();
  const env = { LEASEHOLD_OTHER_KEY: line.coordinator.keys.cell("1") };
  const { code, err } = await line.run(["conformance"], withCell(line, env));
  expect(code).toBe(2);
  expect(err).toContain("--other-key must be the key of another cell");
});

test("a key that says nothing needs --cell, and one that is refused ends it: 5", async () => {
  const line = await startCommandLine();
  const env = { LEASEHOLD_KEY: "a-token" };
  expect((await line.run(["conformance"], { env })).err).toContain("--cell is required");
  const { code, err } = await line.run(["conformance", "--cell", "1"], { env });
  expect(code).toBe(5);
  expect(err).toContain("the key of cell 1 is not accepted: GET /v1/cells/1/leases?page_size=1 answered 401");
});

test("a deployment that does not answer: 6", async () => {
  const line = await startCommandLine();
  line.coordinator.faults.next({ kind: "lose_request" });
  const { code, err } = await line.run(["conformance"], withCell(line));
  expect(code).toBe(6);
  expect(err).toContain("does not answer");
});

test("a check that fails is shown with its rules and what happened: 1", async () => {
  const line = await startCommandLine();
  const { fetch } = line.coordinator;
  const wrong: typeof fetch = async (url, init) =>
    init?.method === "POST" && urlOf(url).endsWith("/commit")
      ? Response.json({ lease: { state: "GRANTED" } })
      : fetch(url, init);
  Object.assign(line, { coordinator: { ...line.coordinator, fetch: wrong } });
  const { code, out, err } = await line.run(["conformance", "--only", "begin/replay", "B6"], withCell(line));
  expect(code).toBe(1);
  expect(out).toMatch(/^B2 +FAILED +0 +1 +0$/m);
  expect(out).toMatch(
    /^FAILED begin\/replay \[B2\]\n {2}The same batch [^\n]+\n {2}POST [^\n]+\/commit answered 200 /m,
  );
  expect(err).toMatch(/^Skipped 1: needs a key of another cell\.$/m);
});

test("types are those that the deployment has declared, unless they are given", async () => {
  const types = {
    bucket_types: { SLUGS: { number: 1 } },
    subject_types: { TENANT: { number: 1 } },
    source_types: { TENANTS: { number: 1 } },
  };
  const line = await startCommandLine({ types });
  const run = async (...args: string[]): Promise<Document> =>
    (await line.json(["conformance", ...FEW, ...args], withCell(line))) as unknown as Document;
  const declared = { bucket: "SLUGS", subject: "TENANT", source: "TENANTS" };
  expect(await run()).toMatchObject({ ok: true, types: declared });
  spoil(line, "/openapi.json", () => new Response("no such thing", { status: 404 }));
  const given = ["--type", "SLUGS", "--subject", "TENANT", "--source", "TENANTS"];
  expect(await run(...given)).toMatchObject({ ok: true, types: declared });
  const { code, err } = await line.run(["conformance", ...FEW], withCell(line));
  expect(code).toBe(2);
  expect(err).toContain("a type is not declared: ");
  expect(err).toContain("Give --type, --subject and --source.");
});

test("a cell that is frozen can't be tested: 3", async () => {
  const line = await startCommandLine();
  await line.client().cells.freeze("2");
  const env = { LEASEHOLD_OTHER_KEY: line.coordinator.keys.cell("2") };
  const { code, err } = await line.run(["conformance"], withCell(line, env));
  expect(code).toBe(3);
  expect(err).toMatch(/^leasehold: cell 2 can't be tested: .+ \(CELL_FROZEN\)\n/);
  expect(await line.client("1").leases.list().all()).toEqual([]);
});

test("Ctrl-C ends it with 130, and the names are given up all the same", async () => {
  const line = await startCommandLine();
  const interrupt = new AbortController();
  line.coordinator.faults.observe(() => {
    if (line.coordinator.faults.calls.length > 60) interrupt.abort(new Error("interrupted"));
  });
  const ran = await line.run(["conformance", "--json"], { ...withCell(line), signal: interrupt.signal });
  expect(ran.code).toBe(130);
  expect(JSON.parse(ran.out)).toMatchObject({ ok: false, interrupted: true, left: [] });
  const { records, leases } = line.client("1");
  expect(await records.list({ sourceType: "RAILS_TABLE_USERS" }).all()).toEqual([]);
  expect(await leases.list().all()).toEqual([]);
});

test("what could not be given up is told with the command that does it later", async () => {
  const line = await startCommandLine();
  const { coordinator } = line;
  const cleaning = /\/records\?/;
  const failing: typeof coordinator.fetch = async (url, init) =>
    cleaning.test(urlOf(url)) ? new Response("", { status: 500 }) : coordinator.fetch(url, init);
  Object.assign(line, { coordinator: { ...coordinator, fetch: failing } });
  const args = ["conformance", "--prefix", "conformance-mine-"];
  const ran = await line.run([...args, "--only", "begin/replay"], withCell(line));
  expect(ran.code).toBe(1);
  expect(ran.err).toContain("It is left: cell 1 can't be cleaned up: GET /v1/cells/1/records");
  expect(ran.err).toContain("Next: leasehold conformance --clean-up conformance-mine-\n");
  Object.assign(line, { coordinator });
  const cleaned = await line.run(["conformance", "--clean-up", "conformance-mine-"], withCell(line));
  expect(cleaned).toMatchObject({ code: 0, out: "Gave up 1 names, and rolled back 0 leases.\n" });
});

test("--list shows the checks with their rules, and sends nothing", async () => {
  const line = await startCommandLine();
  const env = { LEASEHOLD_KEY: undefined, LEASEHOLD_URL: undefined };
  const { code, out } = await line.run(["conformance", "--list", "--only", "C5"], { env });
  expect({ code, sent: line.sent }).toEqual({ code: 0, sent: [] });
  expect(out).toMatch(/^CHECK +RULES +NEEDS +WHAT CONFORMS\ndecision\/only-its-cell +B2 C5 +other +A cell /);
  const { out: lines } = await line.run(["conformance", "--list", "--jsonl"], { env });
  expect(lines.trimEnd().split("\n").length).toBeGreaterThan(40);
});
