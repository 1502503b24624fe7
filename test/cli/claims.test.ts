/** `leasehold claims`: list, show, export, history. */
import { expect, test } from "vitest";
import { ClosedOutputError } from "../../src/cli/framework/io.ts";
import { claim, create, spoil, startCommandLine, type CommandLine } from "./command-line.ts";

const range = ["--cell", "1", "--source", "RAILS_TABLE_USERS"];
const names = ["ada", "barbara", "grace", "joan", "katherine"];

interface Line {
  bucket: { value: string };
}

const valuesOf = (out: string): string[] =>
  out
    .split("\n")
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as Line).bucket.value);

test("ls lists the claims of a cell, of all source types or of one", async () => {
  const line = await startCommandLine();
  await claim(line, "1", ...names);
  await claim(line, "2", "mary");
  const all = await line.json(["claims", "ls", "--cell", "1"]);
  expect((all["claims"] as Line[]).map(({ bucket }) => bucket.value)).toEqual(names);
  const { out, err } = await line.run(["claims", "ls", ...range, "--limit", "2"]);
  expect(out).toMatch(/^USERNAMES +ada +ACTIVE +USER \d+ +RAILS_TABLE_USERS \d+/m);
  expect(err).toContain("The list was cut after 2");
  expect(err).toContain("Next: leasehold claims export --cell 1 --source RAILS_TABLE_USERS");
  const emails = await line.run(["claims", "ls", "--cell", "1", "--type", "EMAILS"]);
  expect(emails).toMatchObject({ code: 0, out: "", err: "Cell 1 has no such claims.\n" });
});

test("show: the row behind a name, and 4 without an owner", async () => {
  const line = await startCommandLine();
  await claim(line, "2", "ada");
  const { out } = await line.run(["claims", "show", "ADA", "--type", "USERNAMES"]);
  expect(out).toMatch(/^cell +2, https:\/\/cell-2\.test$/m);
  expect(out).toMatch(/^source +RAILS_TABLE_USERS \d+$/m);
  expect(await line.run(["claims", "show", "nobody", "--type", "USERNAMES"])).toMatchObject({
    code: 4,
    out: "",
  });
});

test("find: the names of a subject, in all cells", async () => {
  const line = await startCommandLine();
  await claim(line, "1", ...names);
  await claim(line, "2", "mary");
  const { claims } = (await line.json(["claims", "ls", "--cell", "2"])) as {
    claims: { subject: { id: string } }[];
  };
  const ids = claims.map(({ subject }) => subject.id);
  const { out, err } = await line.run(["claims", "find", "USER", ...ids]);
  expect(out).toMatch(/^USERNAMES +mary +2 +ACTIVE +RAILS_TABLE_USERS \d+ +\d+$/m);
  expect(err).toContain("Next: leasehold claims history --type USERNAMES -- mary");
  expect(await line.run(["claims", "find", "USER", "nobody"])).toMatchObject({
    code: 0,
    out: "",
    err: "No cell has a name of USER nobody.\n",
  });
  const undeclared = await line.run(["claims", "find", "PET", "1"]);
  expect(undeclared.code).toBe(2);
  expect(undeclared.err).toContain("PET");
});

test("export prints a line for each claim, and continues with the command that it prints", async () => {
  const line = await startCommandLine();
  await claim(line, "1", ...names);
  const args = ["claims", "export", ...range];
  const whole = await line.run(args);
  expect(whole.code).toBe(0);
  expect(valuesOf(whole.out)).toEqual(names);
  expect(whole.err).toMatch(/^5 claims, as of .+\. That is all\.\n$/);

  const interrupt = new AbortController();
  let writes = 0;
  const first = await line.run(args, {
    signal: interrupt.signal,
    onWrite: () => void ((writes += 1) === 3 && interrupt.abort(new Error("interrupted"))),
  });
  expect(first.code).toBe(130);
  const [, next = ""] = /^Next: leasehold (.+)$/m.exec(first.err) ?? [];
  const rest = await line.run(next.split(" "));
  expect([...new Set([...valuesOf(first.out), ...valuesOf(rest.out)])]).toEqual(names);
  expect(valuesOf(rest.out).length).toBeLessThan(names.length);
});

test("export ends quietly at a closed pipe, and refuses --json", async () => {
  const line = await startCommandLine();
  await claim(line, "1", ...names);
  const onWrite = (): never => {
    throw new ClosedOutputError();
  };
  expect(await line.run(["claims", "export", ...range], { onWrite })).toMatchObject({
    code: 0,
    out: "",
    err: "",
  });
  expect((await line.run(["claims", "export", ...range, "--json"])).code).toBe(2);
});

const ada = ["ADA", "--type", "USERNAMES"];

/** Cell 1 has given a name to cell 2. */
async function moveAda(line: CommandLine): Promise<void> {
  await claim(line, "1", "ada");
  const { leases } = line.client("1");
  const { uuid } = await leases.begin({ destroys: [{ bucket: create("ada").bucket }] });
  await leases.commit(uuid);
  await claim(line, "2", "ada");
}

test("[K2] history: the owners of a name, or the owner at a time", async () => {
  const line = await startCommandLine();
  await moveAda(line);
  const { out, err } = await line.run(["claims", "history", ...ada]);
  expect(out).toMatch(/^\S+ +- +2 +ada +USER \d+ +RAILS_TABLE_USERS \d+ +-\n\S+ +\S+ +1 +ada .+ destroy /m);
  expect(err).toContain("The history is complete, except for periods that were erased.");
  expect(await line.json(["claims", "history", ...ada, "--limit", "1"])).toMatchObject({
    periods: [{ cell_id: "2", until: null }],
    cut: true,
    complete_since: null,
  });
  const early = await line.run(["claims", "history", ...ada, "--at", "2020-01-01T00:00:00Z"]);
  expect(early).toMatchObject({ code: 0, out: "" });
  expect(early.err).toContain("No cell owned this name at 2020-01-01T00:00:00Z.");
  const bad = await line.run(["claims", "history", ...ada, "--at", "yesterday"]);
  expect(bad.code).toBe(2);
  expect(bad.err).toContain("`at` must be an RFC 3339 time");
  spoil(line, "/v1/admin/history/USERNAMES/ADA", () =>
    Response.json({ periods: [], complete_since: "2021-01-01T00:00:00.000Z", next_page_token: "" }),
  );
  const unknown = await line.run(["claims", "history", ...ada, "--at", "2020-01-01T00:00:00Z"]);
  expect(unknown.err).toBe(
    "Periods that ended before 2021-01-01T00:00:00.000Z may be missing.\n" +
      "The owner at 2020-01-01T00:00:00Z is unknown.\n",
  );
});

test("[K5] erase-history: previews, asks for the name, and erases what has ended", async () => {
  const line = await startCommandLine();
  await moveAda(line);
  const periods = async (): Promise<unknown> => (await line.json(["claims", "history", ...ada]))["periods"];
  const erase = ["claims", "erase-history", ...ada];
  const preview = await line.run([...erase, "--dry-run"]);
  expect(preview.out).toContain(
    "Would erase 1 past period of the name, and the name in 2 changes of the change feed.",
  );
  const reason = ["--reason", "request 4711"];
  const other = await line.run([...erase, ...reason], { answers: ["grace"] });
  expect(other).toMatchObject({ code: 2, out: "" });
  expect(await periods()).toHaveLength(2);
  const done = await line.run([...erase, ...reason], { answers: ["ADA"] });
  expect(done).toMatchObject({
    code: 0,
    out: "Erased 1 past period, and the name in 2 changes of the change feed.\n",
  });
  expect(await periods()).toMatchObject([{ cell_id: "2" }]);
  const again = await line.run([...erase, ...reason, "--yes"]);
  expect(again.out).toContain("Nothing was changed.");
});
