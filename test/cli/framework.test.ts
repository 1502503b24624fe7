/** What all commands have in common: flags, formats, exit codes, and how they end. */
import { describe, expect, test } from "vitest";
import { buildProgram } from "../../src/cli/framework/program.ts";
import { commandTree } from "../../src/cli/completion/command-tree.ts";
import { ClosedOutputError } from "../../src/cli/framework/io.ts";
import { claim, create, spoil, startCommandLine } from "./command-line.ts";

const none = (): undefined => undefined;
const program = buildProgram(() => async () => undefined, { out: none, err: none });
const paths = commandTree(program).map(({ path }) => path);

describe("usage", () => {
  test.each(paths)("leasehold %s --help: needs no network, and has an example", async (path) => {
    const line = await startCommandLine();
    const { code, out, err } = await line.run([...path.split(" ").filter(Boolean), "--help"], {
      env: { LEASEHOLD_URL: undefined, LEASEHOLD_KEY: undefined },
    });
    expect({ code, err, sent: line.sent }).toEqual({ code: 0, err: "", sent: [] });
    expect(out).toMatch(/^Usage: leasehold/);
    const isGroup = paths.some((other) => other.startsWith(`${path} `)) || path === "";
    if (!isGroup) expect(out).toContain(`\n    leasehold ${path}`);
  });

  test.each([
    [["lookup", "ada", "--trac"], "(Did you mean --trace?)"],
    [["lokup", "ada"], "(Did you mean lookup?)"],
    [["lookup"], "NAMES is required"],
    [["completion", "tcsh"], "Allowed choices are bash, zsh, fish, powershell."],
    [["lookup", "ada", "--json", "--jsonl"], "give --json or --jsonl, not both"],
    [["api", "FETCH", "/v1/limits"], "METHOD must be one of"],
    [["api", "GET", ".evil.example/v1"], "PATH must start with a slash"],
    [["lookup", "ada", "--url", "https://a.example/path"], "without a path"],
    [["lookup", "ada", "--url", "https://a.example", "--context", "b"], "--url or --context"],
  ])("%j: 2, and nothing is sent", async (args, sentence) => {
    const line = await startCommandLine();
    const { code, err, out } = await line.run(args);
    expect({ code, sent: line.sent }).toEqual({ code: 2, sent: [] });
    expect(err).toContain(sentence);
    if (!args.includes("--json")) expect(out).toBe("");
  });

  test.each([
    [["lookup", "ada", "--\u001b[31mred"]],
    [["\u001b]0;title\u0007"]],
    [["completion", "\u009b2J"]],
    [["api", "GET", "\u202e/v1"]],
    [["dev", "--types", "\u001b[2J.json"]],
    [["keys", "revoke", "\u001b[2J", "--reason", "x"]],
  ])("%j: arguments are escaped in messages", async (args) => {
    const line = await startCommandLine();
    const { code, err, out } = await line.run(args);
    expect(code).toBe(2);
    for (const char of "\u001b\u0007\u009b\u202e") expect(out + err).not.toContain(char);
    expect(err).toMatch(/\\u(?:001b|009b|202e)|must be|start with/);
  });

  test("a missing URL and a missing key: 2, with the command that helps", async () => {
    const line = await startCommandLine();
    const noUrl = await line.run(["lookup", "ada"], { env: { LEASEHOLD_URL: "" } });
    expect(noUrl).toMatchObject({ code: 2, out: "" });
    expect(noUrl.err).toContain("set LEASEHOLD_URL");
    expect(noUrl.err).toContain("Next: leasehold login --url URL");
    const neither = await line.run(["lookup", "ada"], { env: { LEASEHOLD_URL: "", LEASEHOLD_KEY: "" } });
    expect(neither.err).toContain("set LEASEHOLD_URL and LEASEHOLD_KEY");
    const noKey = await line.run(["lookup", "ada"], { env: { LEASEHOLD_KEY: "" } });
    expect(noKey.err).toContain(`Next: leasehold login --url ${line.coordinator.url}`);
  });
});

/** Arguments with which each command that changes something would run. */
const changes: Readonly<Record<string, readonly string[]>> = {
  api: ["POST", "/v1/admin/cells/1/freeze"],
  "leases commit": ["0198c5a0-5f6e-7000-8000-000000000001", "--cell", "1"],
  "leases rollback": ["0198c5a0-5f6e-7000-8000-000000000001", "--cell", "1"],
  "transfers prepare": ["--from", "1", "--to", "2", "--scope", "9970"],
  "transfers accept": ["2-0198c5a0-5f6e-7000-8000-000000000001"],
  "transfers cut": ["2-0198c5a0-5f6e-7000-8000-000000000001"],
  "transfers abort": ["2-0198c5a0-5f6e-7000-8000-000000000001"],
  "transfers switch-back": ["2-0198c5a0-5f6e-7000-8000-000000000001"],
  "claims erase-history": ["ada", "--type", "USERNAMES"],
  "cells set": ["1", "--address", "https://new.example"],
  "cells freeze": ["1"],
  "cells drain": ["1"],
  "cells undrain": ["1"],
  "cells remove": ["1"],
  "cells thaw": ["1"],
  "shards grow": ["--to", "16"],
  "operations end": ["01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42"],
  "upgrade finish": [],
  "shards abort": [],
  "parts reconcile": ["shard-3"],
  "parts finish": ["shard-3"],
  "keys revoke": ["0198c5a0-5f6e-7000-8000-000000000001"],
  "webhooks set": ["0198c5a0-5f6e-7000-8000-000000000001", "--disable"],
  "webhooks rm": ["0198c5a0-5f6e-7000-8000-000000000001"],
  "types apply": [],
  "identities apply": [],
  restore: ["backup.jsonl"],
};

describe("commands that need a reason", () => {
  const withReason = commandTree(program).filter(({ flags }) =>
    ["--reason", "--yes"].every((flag) => flags.some(({ name }) => name === flag)),
  );

  test.each(withReason.map(({ path }) => path))("leasehold %s sends nothing without it", async (path) => {
    const line = await startCommandLine();
    const args = changes[path];
    expect(args, "the list above lacks the arguments of this command").toBeDefined();
    const { code, err } = await line.run([...path.split(" "), ...(args ?? []), "--yes"]);
    expect({ code, err, sent: line.sent }).toEqual({
      code: 2,
      err:
        path === "api"
          ? "leasehold: --reason is required: say why you do this\n"
          : `leasehold: --reason is required\nNext: leasehold ${path} --help\n`,
      sent: [],
    });
  });
});

describe("how commands end", () => {
  test("5 for a wrong key, without showing it", async () => {
    const line = await startCommandLine();
    const { code, err } = await line.run(["lookup", "ada"], { env: { LEASEHOLD_KEY: "lhk_wrong.key" } });
    expect(code).toBe(5);
    expect(err).toContain("UNAUTHENTICATED");
    expect(err).not.toContain("lhk_wrong");
  });

  test("2 for a name that the type cannot have, and 6 without an answer", async () => {
    const line = await startCommandLine();
    expect(await line.run(["lookup", "ada", "--type", "NONE"])).toMatchObject({ code: 2, out: "" });
    await line.coordinator.close();
    expect(await line.run(["api", "GET", "/v1/limits"])).toMatchObject({ code: 6, out: "" });
  });

  test("a failure with --json is one document too", async () => {
    const line = await startCommandLine();
    const document = await line.json(["lookup", "ada"], { env: { LEASEHOLD_KEY: "lhk_wrong.key" } });
    expect(document).toMatchObject({
      error: { code: "UNAUTHENTICATED", retryable: false },
      next_steps: ["leasehold login --url URL", "leasehold doctor"],
    });
  });

  test("wrong usage with --json is one document too", async () => {
    const line = await startCommandLine();
    expect(await line.json(["lookup", "ada", "--trac"])).toMatchObject({
      error: { message: expect.stringContaining("unknown option '--trac'") },
      next_steps: [],
    });
  });

  test("a failure keeps its exit code if nobody reads its document", async () => {
    const line = await startCommandLine();
    const closed = (): never => {
      throw new ClosedOutputError();
    };
    const args = ["claims", "show", "nobody", "--type", "USERNAMES", "--json"];
    expect((await line.run(args, { onWrite: closed })).code).toBe(4);
  });

  test("a closed pipe ends quietly", async () => {
    const line = await startCommandLine();
    await claim(line, "1", "ada");
    const closed = (): never => {
      throw new ClosedOutputError();
    };
    const ran = await line.run(["lookup", "ada"], { onWrite: closed });
    expect(ran).toMatchObject({ code: 0, out: "", err: "" });
  });

  test("Ctrl-C ends with 130", async () => {
    const line = await startCommandLine();
    const signal = AbortSignal.abort(new Error("interrupted"));
    expect(await line.run(["lookup", "ada"], { signal })).toMatchObject({ code: 130, out: "" });
  });

  // The client leaves the second one out.
  test.each([
    ["cells", "ls"],
    ["shards", "show"],
  ])("a read that fails does not say that it may have been carried out: %s %s", async (...args) => {
    const line = await startCommandLine();
    line.coordinator.faults.always({ kind: "unavailable" });
    const { code, err } = await line.run(args);
    expect(code).toBe(6);
    expect(err).toContain("(UNAVAILABLE");
    expect(err).not.toContain("carried out");
    expect(await line.json(args)).toMatchObject({ error: { outcome_known: true } });
  });

  test("Ctrl-C during a change says that it may have been carried out", async () => {
    const line = await startCommandLine();
    const interrupt = new AbortController();
    const { uuid } = await line.client("1").leases.begin({ creates: [create("ada")] });
    line.coordinator.faults.next({ kind: "hang", carriedOut: true }, { operation: "rollback" });
    const args = ["leases", "rollback", uuid, "--cell", "1", "--reason", "test", "--yes"];
    const running = line.run(args, { signal: interrupt.signal });
    await expect.poll(() => line.changes.length).toBe(1);
    interrupt.abort(new Error("interrupted"));
    expect(await running).toMatchObject({
      code: 130,
      err: expect.stringContaining("The request may have been carried out: look before you repeat it."),
    });
  });
});

describe("output", () => {
  /** It would clear a terminal, reverse the rest of the line, and hide a character. */
  const hostile = "a\u001B[2J\u202E\u200Bb";

  test("control characters from outside are escaped in tables, JSON and next steps", async () => {
    const types = {
      bucket_types: { LABELS: { number: 1 } },
      subject_types: { USER: { number: 1 } },
      source_types: { ROWS: { number: 1 } },
    };
    const line = await startCommandLine({ types });
    for (const args of [[], ["--json"], ["--jsonl"], ["--trace"]]) {
      const { out, err } = await line.run(["lookup", hostile, "--type", "LABELS", ...args], {
        isTerminal: true,
        env: { NO_COLOR: "1" },
      });
      for (const char of ["\u001B", "\u202E", "\u200B"]) expect(out + err).not.toContain(char);
    }
  });

  test("control characters of a proxy are escaped in its answer, its headers and messages", async () => {
    const line = await startCommandLine();
    const headers = { "content-type": "text/plain\u009b2J" };
    spoil(line, "/v1/limits", () => new Response(`line 1\nline 2 ${hostile}`, { headers }));
    const { out, err } = await line.run(["api", "GET", "/v1/limits", "--include"], { isTerminal: true });
    expect(out).toContain("line 1\nline 2 a\\u001b[2J");
    expect(err).toContain("content-type: text/plain\\u009b2J");
    const cells = JSON.stringify({ entries: [], complete_through: hostile, next_page_token: "" });
    const json = { "content-type": "application/json" };
    spoil(line, "/v1/admin/audit", () => new Response(cells, { headers: json }));
    const audit = await line.run(["audit"]);
    for (const char of ["\u001B", "\u202E", "\u200B", "\u009B"])
      expect(out + err + audit.out + audit.err).not.toContain(char);
    expect(audit.err).toContain("all changes before a\\u001b[2J");
  });

  test("a table is aligned, and bold only on a terminal without NO_COLOR", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "ada", "grace");
    const args = ["lookup", "ada", "grace", "--type", "USERNAMES"];
    const { out } = await line.run(args);
    const rows = out.trimEnd().split("\n");
    expect(rows).toHaveLength(3);
    expect(new Set(rows.map((row) => row.search(/TYPE|USERNAMES/))).size).toBe(1);
    expect(out).not.toContain("\u001B");
    expect((await line.run(args, { isTerminal: true })).out).toContain("\u001B[1mNAME");
    expect((await line.run(args, { isTerminal: true, env: { NO_COLOR: "1" } })).out).toBe(out);
  });

  test("--jsonl prints a line for each item, and --json one document with next steps", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "ada");
    const { out } = await line.run(["lookup", "ada", "nobody", "--type", "USERNAMES", "--jsonl"]);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((each) => JSON.parse(each) as { name: string; found: boolean });
    expect(lines.map(({ name, found }) => [name, found])).toEqual([
      ["ada", true],
      ["nobody", false],
    ]);
    expect(await line.json(["lookup", "ada", "--type", "USERNAMES"])).toMatchObject({
      names: [{ name: "ada", cell: "2", address: "https://cell-2.test", status: "ACTIVE" }],
      next_steps: ["leasehold lookup --trace --type USERNAMES -- ada"],
    });
  });
});

describe("lookup", () => {
  test("looks in all types for operators, and ends with 4 if a name has no owner", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "Ada");
    const { code, out } = await line.run(["lookup", "ADA"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^ADA +USERNAMES +2 +https:\/\/cell-2\.test +ACTIVE/m);
    const missing = await line.run(["lookup", "ada", "nobody"]);
    expect(missing.code).toBe(4);
    expect(missing.out).toMatch(/^nobody +- +none/m);
    const asCell = await line.run(["lookup", "ada"], {
      env: { LEASEHOLD_KEY: line.coordinator.keys.cell("1") },
    });
    expect(asCell).toMatchObject({ code: 2, out: "" });
    expect(asCell.err).toContain("--type is required");
  });

  test("--trace compares the record with the route, and shows the lease that holds the name", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "ada");
    const { uuid } = await line.client("1").leases.begin({ creates: [create("grace")] });
    const args = ["lookup", "ada", "grace", "--type", "USERNAMES", "--trace"];
    const { names, next_steps: steps } = (await line.json(args)) as {
      names: Record<string, unknown>[];
      next_steps: string[];
    };
    expect(names).toMatchObject([
      { name: "ada", same: true, settled: true, record: { cell: "2", lease: null }, route: { cell: "2" } },
      { name: "grace", same: true, settled: false, record: { status: "LEASE_CREATING", lease: uuid } },
    ]);
    expect(names[0]).toMatchObject({ key: expect.any(String), shard: expect.any(Number), age_ms: 0 });
    expect(steps).toEqual([`leasehold leases show ${uuid} --cell 1`]);
    const { out, code } = await line.run(args);
    expect(code).toBe(0);
    expect(out).toContain(`hold      lease ${uuid}`);
  });

  test("--trace ends with 10 if the two answers stay different", async () => {
    const line = await startCommandLine();
    await claim(line, "2", "ada");
    const key = "0123456789abcdef";
    const route = { found: true, key, shard: 0, position: 1, settled: true, age_ms: 0, epoch: 1 };
    spoil(line, "/v1/route/USERNAMES/ada", () =>
      Response.json({ ...route, cell: { id: "1", address: "https://cell-1.test" } }),
    );
    const { code, out } = await line.run(["lookup", "ada", "--type", "USERNAMES", "--trace"]);
    expect(code).toBe(10);
    expect(out).toContain("DIFFERENT");
  });
});

describe("api", () => {
  test("prints the answer, and ends with the code of its status", async () => {
    const line = await startCommandLine();
    const limits = await line.run(["api", "get", "/v1/limits", "--include"]);
    expect(limits.code).toBe(0);
    expect(JSON.parse(limits.out)).toHaveProperty("limits");
    expect(limits.err).toContain("HTTP 200\ncontent-type: application/json");
    expect(await line.run(["api", "GET", "/v1/records/USERNAMES/ada"])).toMatchObject({ code: 4 });
    expect(await line.run(["api", "GET", "/v1/limits?x=1"])).toMatchObject({ code: 2 });
  });

  test("sends a body from standard input, and asks before it changes anything", async () => {
    const line = await startCommandLine();
    const lookup = ["api", "POST", "/v1/records/lookup", "--data", "@-"];
    const input = '{"buckets":[{"type":"USERNAMES","value":"ada"}]}';
    expect((await line.run(lookup, { input })).out).toContain('"found": false');
    line.sent.length = 0;
    const freeze = ["api", "POST", "/v1/admin/cells/1/freeze"];
    expect((await line.run(freeze)).err).toContain("--reason is required");
    expect((await line.run([...freeze, "--reason", "test"])).err).toContain("give --yes");
    expect((await line.run([...freeze, "--reason", "test"], { answers: ["no"] })).code).toBe(2);
    expect((await line.run([...freeze, "--dry-run"])).err).toContain("Nothing was sent.");
    const hidden = await line.run([...freeze, "--dry-run", "--data", "@-"], {
      input: '{"reason":"\u009b2J"}',
    });
    expect(hidden.out).toContain('{"reason":"\\u009b2J"}');
    expect(line.sent).toEqual([]);
    expect((await line.run([...freeze, "--reason", "test"], { answers: ["POST"] })).code).toBe(0);
    expect(line.changes).toMatchObject([{ path: "/v1/admin/cells/1/freeze" }]);
  });
});
