/** `leasehold cells`. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { create, spoil, startCommandLine, type CommandLine } from "./command-line.ts";

const reason = ["--reason", "a test"];

test("ls and show", async () => {
  const line = await startCommandLine({ cells: ["1", "2", "3"] });
  const list = await line.run(["cells", "ls", "--limit", "2"]);
  expect(list.out).toMatch(/^2 +cell-2 +ACTIVE +https:\/\/cell-2\.test/m);
  expect(list.err).toContain("The list was cut after 2");
  expect(await line.json(["cells", "show", "3"])).toMatchObject({ cell: { cell_id: "3", state: "ACTIVE" } });
  const missing = await line.run(["cells", "show", "4"]);
  expect(missing).toMatchObject({ code: 4, out: "", err: expect.stringContaining("there is no cell 4") });
});

test("show has what the cell reported, its use of the limits, and what is not in order", async () => {
  const line = await startCommandLine({ variables: { LEASEHOLD_OUTSTANDING_LEASES: "10" } });
  const cells = line.client("1").cells;
  expect((await line.run(["cells", "show", "1"])).out).toMatch(/^open leases +0 of 10 \(0 %\)$/m);
  await line.client("1").leases.begin({ creates: [create("ada")] });
  await cells.reportStatus({
    sdk: { name: "my-cell", version: "1" },
    reconciliation: { outcome: "done" },
    verification: { status: "done", counts: { missing: 3 } },
  });
  const { id } = await line.client().keys.mint({ role: "cell", cell_id: "1" });
  await line.client().keys.revoke(id);
  await line.coordinator.advance(16 * 60_000);
  const { code, out, err } = await line.run(["cells", "show", "1"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^open leases +1 of 10 \(10 %\)$/m);
  expect(out).toMatch(/^bytes +\d+ of \d+ \(0 %\)$/m);
  expect(out).toMatch(/^reported +16m(?: \d+s)? ago$/m);
  expect(out).toMatch(/^sdk +my-cell 1$/m);
  expect(out).toMatch(/^reconciliation +done, ended 16m(?: \d+s)? ago$/m);
  expect(out).toMatch(/^drift +3 missing$/m);
  expect(err).toMatch(/^Cell 1 is silent: .+ No key that is listed for it is valid\.$/m);
  expect(err).toContain("The last verification of cell 1 found drift: 3 missing.\n");
  expect(err).toContain("Next: leasehold keys mint --role cell --cell 1\n");
  expect((await line.run(["cells", "show", "2"])).out).toMatch(/^reported +never$/m);
});

test("add registers a cell, and a cell that exists is a conflict", async () => {
  const line = await startCommandLine();
  const add = ["cells", "add", "7", "--name", "europe", "--address", "https://eu.example"];
  expect((await line.run([...add, "--dry-run"])).err).toContain("Nothing was changed.");
  expect(line.sent).toEqual([]);
  const { code, err } = await line.run(add);
  expect(code).toBe(0);
  expect(err).toContain("Next: leasehold keys mint --role cell --cell 7 --note europe");
  expect((await line.run(add)).code).toBe(3);
});

test("set changes the address, and prints the command that undoes it", async () => {
  const line = await startCommandLine();
  const set = ["cells", "set", "1", "--address", "https://new.example", ...reason];
  expect((await line.run(["cells", "set", "1", ...reason, "--yes"])).code).toBe(2);
  const { code, out, err } = await line.run(set, { answers: ["1"] });
  expect({ code, out }).toEqual({
    code: 0,
    out: "Changed cell 1: address https://cell-1.test -> https://new.example\n",
  });
  const [, undo = ""] = /^To undo it: leasehold (.+) --reason TEXT$/m.exec(err) ?? [];
  expect((await line.run([...undo.split(" "), ...reason, "--yes"])).code).toBe(0);
  expect(await line.json(["cells", "show", "1"])).toMatchObject({ cell: { address: "https://cell-1.test" } });
});

describe.each([
  ["freeze", "FROZEN", "thaw"],
  ["thaw", "ACTIVE", "freeze"],
  ["drain", "DRAINING", "undrain"],
  ["undrain", "ACTIVE", "drain"],
])("%s", (command, state, undo) => {
  test("sends nothing without a reason and the id of the cell, then changes the state", async () => {
    const line = await startCommandLine();
    if (command === "thaw") await line.client().cells.freeze("2");
    if (command === "undrain") await line.client().cells.drain("2");
    const args = ["cells", command, "2"];
    expect((await line.run([...args, "--yes"])).code).toBe(2);
    expect(line.sent).toEqual([]);
    expect((await line.run([...args, ...reason], { answers: ["1"] })).code).toBe(2);
    expect((await line.run([...args, "--dry-run"])).out).toContain(`would be ${state}`);
    expect(line.changes).toEqual([]);
    const done = await line.run([...args, ...reason], { answers: ["2"] });
    expect(done).toMatchObject({
      code: 0,
      err: expect.stringContaining(`To undo it: leasehold cells ${undo} 2 --reason TEXT`),
    });
    expect(await line.json(["cells", "show", "2"])).toMatchObject({ cell: { state } });
    line.sent.length = 0;
    expect((await line.run([...args, ...reason, "--yes"])).out).toContain("Nothing was changed.");
    expect(line.changes).toEqual([]);
  });
});

test("undrain does not thaw a frozen cell", async () => {
  const line = await startCommandLine();
  await line.client().cells.freeze("2");
  const { code, err } = await line.run(["cells", "undrain", "2", ...reason, "--yes"]);
  expect(code).toBe(3);
  expect(err).toContain("cell 2 is FROZEN, not DRAINING: nothing was changed");
  expect(err).toContain("leasehold cells thaw 2 --reason TEXT");
});

describe("remove", () => {
  /** A draining cell 2 with claims, and a name of cell 1. */
  async function drained(claims = 5, variables: Record<string, string> = {}): Promise<CommandLine> {
    const line = await startCommandLine({ variables, shards: 2 });
    const names = Array.from({ length: claims }, (_, index) => `Group/Näme-${index}`);
    const owned = claims === 0 ? [] : ([["2", names]] as const);
    for (const [cell, values] of [["1", ["other"]], ...owned] as const) {
      const creates = values.map((value, index) => ({
        bucket: { type: "ROUTES" as const, value },
        subject: { type: "NAMESPACE" as const, id: "7" },
        source: { type: "RAILS_TABLE_ROUTES" as const, id: String(index + 1) },
      }));
      const { uuid } = await line.client(cell).leases.begin({ creates });
      await line.client(cell).leases.commit(uuid);
    }
    await line.client().cells.drain("2");
    return line;
  }

  const remove = ["cells", "remove", "2"];

  test("counts and compares more claims than one call reads", async () => {
    // A call waits for a bounded number of messages, and each message reads one claim here.
    const line = await drained(450, { LEASEHOLD_SCAN_ROWS: "1" });
    const preview = await line.run([...remove, "--dry-run"]);
    expect(preview.out).toMatch(/claims to release +450\n/);
    expect(preview.out).toMatch(/RAILS_TABLE_ROUTES +ROUTES +450/);
    expect(preview.err).toMatch(/^\d+ claims counted$/m);
    const file = join(line.home, "cell-2.jsonl");
    const { code, out, err } = await line.run([...remove, "--export", file, ...reason, "--yes"]);
    expect({ code, out }).toEqual({
      code: 0,
      out: "Cell 2 is removed. This run has released 450 claims.\n",
    });
    expect(err).toMatch(/^\d+ claims compared with the export$/m);
    const starts = line.sent.filter(
      ({ method, path }) => method === "POST" && path === "/v1/admin/cells/2/removal",
    );
    expect(starts.length).toBeGreaterThan(2);
  });

  test("--dry-run shows what would be released, and changes nothing", async () => {
    const line = await drained();
    const { code, out, err } = await line.run([...remove, "--dry-run"]);
    expect(code).toBe(0);
    expect(out).toMatch(/claims to release +5\n/);
    expect(out).toMatch(/RAILS_TABLE_ROUTES +ROUTES +5/);
    expect(err).toContain("Next: leasehold cells remove 2 --export FILE --reason TEXT");
    expect(line.changes).toEqual([]);
  });

  test("exports the claims to a private file, releases them, and prints what it did", async () => {
    const line = await drained();
    const file = join(line.home, "cell-2.jsonl");
    const args = [...remove, "--export", file, ...reason];
    expect((await line.run(args, { answers: ["1"] })).code).toBe(2);
    expect(existsSync(file)).toBe(false);
    expect(line.changes).toEqual([]);
    const { code, out, asked } = await line.run(args, { answers: ["2"] });
    expect({ code, out }).toEqual({
      code: 0,
      out: "Cell 2 is removed. This run has released 5 claims.\n",
    });
    expect(asked[0]).toContain("It releases 5 claims, for good.");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const lines = readFileSync(file, "utf8").trim().split("\n");
    expect(lines.map((text) => (JSON.parse(text) as { cell_id: string }).cell_id)).toEqual(
      Array<string>(5).fill("2"),
    );
    expect(await line.json(["cells", "show", "2"])).toMatchObject({ cell: { state: "REMOVED" } });
    expect((await line.run(["lookup", "other"])).out).toContain("cell-1");
    expect((await line.run([...remove, ...reason, "--yes"])).out).toContain("is removed already");
  });

  test("overwrites nothing, and is refused for a cell that is active or has open leases", async () => {
    const line = await drained();
    const file = join(line.home, "taken");
    writeFileSync(file, "mine");
    const args = ["--export", file, ...reason, "--yes"];
    expect(await line.run([...remove, ...args])).toMatchObject({
      code: 3,
      err: expect.stringContaining("is no claim, so the file is no export"),
    });
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await line.run([...remove, ...reason, "--yes"])).err).toContain("--export FILE is required");
    expect(await line.run(["cells", "remove", "1", ...args])).toMatchObject({
      code: 3,
      err: expect.stringContaining("leasehold cells drain 1 --reason TEXT"),
    });
    expect(await line.json(["cells", "show", "2"])).toMatchObject({ cell: { state: "DRAINING" } });
  });

  test("after Ctrl-C, the same command goes on without a second export", async () => {
    const line = await drained();
    const file = join(line.home, "cell-2.jsonl");
    const args = [...remove, "--export", file, ...reason, "--yes"];
    const interrupt = new AbortController();
    const real = line.coordinator;
    let steps = 0;
    const fetch: typeof real.fetch = async (url, init) => {
      const path = new URL(url instanceof Request ? url.url : url).pathname;
      if (path.endsWith("/steps") && (steps += 1) === 2) interrupt.abort(new Error("interrupted"));
      return real.fetch(url, init);
    };
    Object.assign(line, { coordinator: { ...real, fetch } });
    const stopped = await line.run(args, { signal: interrupt.signal });
    Object.assign(line, { coordinator: real });
    expect(stopped).toMatchObject({
      code: 130,
      err: expect.stringContaining("The same command goes on with it"),
    });
    const { mtimeMs } = statSync(file);
    expect(await line.run(args)).toMatchObject({
      code: 0,
      out: expect.stringContaining("Cell 2 is removed."),
      err: expect.stringContaining("this run exports nothing"),
    });
    expect(await line.json([...remove, "--dry-run"])).toMatchObject({
      removal: { claims_total: 0, progress: { exported_claims: 5, released_claims: 5 } },
    });
    expect(statSync(file).mtimeMs).toBe(mtimeMs);
  });

  test("a refused start says that it has not started, and the same command uses its export", async () => {
    const line = await drained();
    const file = join(line.home, "cell-2.jsonl");
    const args = [...remove, "--export", file, ...reason, "--yes"];
    const real = line.coordinator;
    const fail = (status: number, problem: object) => {
      spoil(line, "/v1/admin/cells/2/removal", () => Response.json(problem, { status, headers }));
      const { fetch } = line.coordinator;
      const onlyPosts: typeof fetch = (url, init) =>
        (init?.method === "POST" ? fetch : real.fetch)(url, init);
      Object.assign(line, { coordinator: { ...real, fetch: onlyPosts } });
    };
    const headers = { "content-type": "application/problem+json" };
    const common = { title: "t", detail: "d", code: "FAILED_PRECONDITION", retryable: false };
    fail(409, { ...common, reason: "CELL_HAS_LEASES" });
    const refused = await line.run(args);
    expect(refused.err).toContain("the removal of cell 2 has not started: d");
    expect(refused.err).toContain(`Next: leasehold cells remove 2 --export ${file} --reason TEXT`);
    fail(409, { ...common, reason: "EXPORT_DIFFERS" });
    expect(await line.run(args)).toMatchObject({
      code: 3,
      err: expect.stringContaining("give the name of another file"),
    });
    fail(500, {});
    expect((await line.run(args)).err).toContain("has not started");
    fail(503, { ...common, code: "UNAVAILABLE", detail: "it may have been done" });
    expect((await line.run(args)).err).toMatch(/has not started: .*it may have been done/);
    spoil(line, "/v1/admin/cells/2/removal", () => {
      throw new TypeError("the connection broke");
    });
    const { fetch: breaking } = line.coordinator;
    const breaksPosts: typeof breaking = (url, init) =>
      (init?.method === "POST" ? breaking : real.fetch)(url, init);
    Object.assign(line, { coordinator: { ...real, fetch: breaksPosts } });
    const broken = await line.run(args);
    expect(broken).toMatchObject({ code: 6, err: expect.stringContaining("has not started") });
    Object.assign(line, { coordinator: real });
    const done = await line.run(args);
    expect(done.err).toContain(`${file} exists, and is used as it is`);
    expect(done.out).toContain("Cell 2 is removed.");
  });

  test("an export that lost a line is refused by the coordinator", async () => {
    const line = await drained();
    const file = join(line.home, "cell-2.jsonl");
    writeFileSync(file, "");
    const { code, err } = await line.run([...remove, "--export", file, ...reason, "--yes"]);
    expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining("has 5 claims") });
    expect(await line.json(["cells", "show", "2"])).toMatchObject({ cell: { state: "DRAINING" } });
  });

  test("Ctrl-C during the pause between two steps says how to go on", async () => {
    const line = await drained();
    const real = line.coordinator;
    const interrupt = new AbortController();
    spoil(line, "/v1/admin/cells/2/removal/steps", () =>
      Response.json({ title: "t", code: "UNAVAILABLE", retryable: true }, { status: 503 }),
    );
    const wait = async (): Promise<void> => {
      interrupt.abort(new Error("interrupted"));
      throw new Error("the wait was aborted");
    };
    const file = join(line.home, "cell-2.jsonl");
    const args = [...remove, "--export", file, ...reason, "--yes"];
    const stopped = await line.run(args, { signal: interrupt.signal, wait });
    expect(stopped).toMatchObject({
      code: 130,
      err: expect.stringContaining("The same command goes on with it"),
    });
    expect(stopped.err).toContain(`Next: leasehold cells remove 2 --export ${file} --reason TEXT`);
    // No step has started the removal, so the export is compared again.
    Object.assign(line, { coordinator: real });
    expect(await line.run(args)).toMatchObject({
      code: 0,
      out: expect.stringContaining("Cell 2 is removed."),
      err: expect.stringContaining(`${file} exists, and is used as it is`),
    });
  });
});
