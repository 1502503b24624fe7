/** `leasehold claims`: list, show, export. */
import { expect, test } from "vitest";
import { ClosedOutputError } from "../../src/cli/framework/io.ts";
import { claim, startCommandLine } from "./command-line.ts";

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
