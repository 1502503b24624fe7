/** `leasehold bench`: it measures, is bounded, and leaves no names behind. */
import { expect, test } from "vitest";
import { createClient } from "../../src/users/client/index.ts";
import { create, startCommandLine, type CommandLine } from "./command-line.ts";

interface Document {
  run: string;
  cell: string;
  leases: number;
  calls: { op: string; count: number; p50_ms: number; failed: Record<string, number> }[];
  clean_up: { destroyed: number; rolled_back: number };
  problems: string[];
  interrupted: boolean;
}

const claimsOf = (line: CommandLine, cell: string) =>
  line.client().forCell(cell).records.list({ sourceType: "RAILS_TABLE_USERS" }).all();

test("an operator's run has a cell and a key of its own, and leaves neither them nor names", async () => {
  const line = await startCommandLine();
  const cells = await line.client().cells.list().all();
  const args = ["bench", "--leases", "20", "--concurrency", "4", "--yes"];
  const ran = await line.run([...args, "--json"]);
  const { run, cell, leases, calls, clean_up: cleaned } = JSON.parse(ran.out) as Document;
  expect({ code: ran.code, leases, cleaned }).toEqual({
    code: 0,
    leases: 20,
    cleaned: { destroyed: 18, rolled_back: 0 },
  });
  expect(calls.map(({ op, count }) => [op, count])).toEqual([
    ["begin", 20],
    ["commit", 18],
    ["rollback", 2],
    ["lookup", 20],
  ]);
  expect(ran.out + ran.err).not.toContain("lhk_");
  expect(await line.client().cells.list().all()).toEqual(cells);
  expect(await line.json(["cells", "show", cell])).toMatchObject({ cell: { state: "REMOVED" } });
  const keys = await line.client().keys.list().all();
  expect(keys.map(({ note, revoked_at: at }) => [note, at !== null])).toEqual([
    [`leasehold bench, run ${run}`, true],
  ]);
});

test.each([
  ["Ctrl-C", "hang", 130],
  ["a key that can't be made", "mint", 6],
  ["a load that fails", "load", 1],
])("after %s, no cell of the run is left", async (_, failing, code) => {
  const line = await startCommandLine();
  const cells = await line.client().cells.list().all();
  const interrupt = new AbortController();
  const real = line.coordinator.fetch;
  const fetch: typeof real = async (url, init) => {
    const { pathname } = new URL(url instanceof Request ? url.url : url);
    if (failing === "mint" && pathname === "/v1/admin/keys") throw new TypeError("fetch failed");
    if (pathname.endsWith("/commit") && failing === "hang") interrupt.abort(new Error("interrupted"));
    if (pathname.endsWith("/commit") && failing === "load") return new Response("not JSON");
    return real(url, init);
  };
  Object.assign(line, { coordinator: { ...line.coordinator, fetch } });
  const { signal } = interrupt;
  const ran = await line.run(["bench", "--leases", "20", "--yes"], { signal });
  expect(ran.code).toBe(code);
  expect(await line.client().cells.list().all()).toEqual(cells);
});

test("what a killed run of an operator has left is removed with its cell", async () => {
  const line = await startCommandLine();
  const cells = await line.client().cells.list().all();
  const run = "1f3b5c7d";
  await line
    .client()
    .cells.add({ cell_id: "77", name: `leasehold-bench-${run}`, address: "https://x.invalid" });
  const { key } = await line.client().keys.mint({ role: "cell", cell_id: "77" });
  const { url } = line.coordinator;
  const { leases } = createClient({ url, fetch: line.coordinator.fetch, key, cell: "77" });
  const id = `leasehold-bench-${run}-1`;
  const named = { ...create(id), source: { type: "RAILS_TABLE_USERS" as const, id } };
  await leases.commit((await leases.begin({ creates: [named] })).uuid);
  const ran = await line.run(["bench", "--clean-up", run, "--yes"]);
  expect(ran).toMatchObject({ code: 0, out: `Gave up 1 names of run ${run}, and rolled back 0 leases.\n` });
  expect(await line.client().cells.list().all()).toEqual(cells);
  expect(await line.run(["bench", "--clean-up", run, "--yes"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("give --cell") as string,
  });
});

test("a clean-up that finds other claims or leases of the run does not drain its cell", async () => {
  const line = await startCommandLine();
  const cells = await line.client().cells.list().all();
  const run = "1f3b5c7d";
  const named = `leasehold-bench-${run}`;
  await line.client().cells.add({ cell_id: "77", name: named, address: "https://x.invalid" });
  const { key } = await line.client().keys.mint({ role: "cell", cell_id: "77" });
  const { url, fetch } = line.coordinator;
  const { leases } = createClient({ url, fetch, key, cell: "77" });
  const source = "RAILS_TABLE_EMAILS" as const;
  const { uuid } = await leases.begin({
    creates: [{ ...create("1"), source: { type: source, id: `${named}-1` } }],
  });
  const again = ["bench", "--clean-up", run, "--yes"];
  const open = await line.run(again);
  expect(open).toMatchObject({ code: 1, err: expect.stringContaining("still has 1 open leases") as string });
  await leases.commit(uuid);
  const refused = await line.run(again);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(`still has 1 claims, of the source types ${source}, so it was not drained`);
  expect(refused.err).toContain(`Next: leasehold bench --clean-up ${run} --source ${source}\n`);
  expect(await line.json(["cells", "show", "77"])).toMatchObject({ cell: { state: "ACTIVE" } });
  expect(await line.run([...again, "--source", source])).toMatchObject({ code: 0 });
  expect(await line.client().cells.list().all()).toEqual(cells);
});

test("a run whose new id is another's cell leaves that cell alone", async () => {
  const line = await startCommandLine();
  const real = line.coordinator.fetch;
  let id = "";
  const fetch: typeof real = async (target, init) => {
    const { pathname } = new URL(target instanceof Request ? target.url : target);
    if (pathname === "/v1/admin/cells" && init?.method === "POST" && id === "") {
      ({ cell_id: id } = JSON.parse(init.body as string) as { cell_id: string });
      const { url, keys } = line.coordinator;
      const other = createClient({ url, key: keys.operator, fetch: real });
      await other.cells.add({ cell_id: id, name: "other", address: "https://x.invalid" });
    }
    return real(target, init);
  };
  Object.assign(line, { coordinator: { ...line.coordinator, fetch } });
  expect((await line.run(["bench", "--leases", "2", "--yes"])).code).not.toBe(0);
  expect(await line.json(["cells", "show", id])).toMatchObject({ cell: { name: "other", state: "ACTIVE" } });
});

test("a key of a cell needs nothing else", async () => {
  const line = await startCommandLine();
  const env = { LEASEHOLD_KEY: line.coordinator.keys.cell("2") };
  const { code, out } = await line.run(["bench", "--leases", "3", "--yes"], { env });
  expect(code).toBe(0);
  expect(out).toMatch(/^CALL +COUNT +PER S +P50 MS +P90 MS +P99 MS +MAX MS +FAILED\nbegin +3 /);
  expect(line.sent.filter(({ path }) => path.startsWith("/v1/admin"))).toEqual([]);
  const other = await line.run(["bench", "--cell", "1", "--yes"], { env });
  expect(other).toMatchObject({ code: 2, err: expect.stringContaining("leave out --cell") });
  const router = await line.run(["bench", "--yes"], { env: { LEASEHOLD_KEY: line.coordinator.keys.router } });
  expect(router.code).toBe(5);
});

test("without --yes, nothing is sent to another machine, unless a person types its host", async () => {
  const line = await startCommandLine();
  expect((await line.run(["bench", "--leases", "1"])).code).toBe(2);
  expect((await line.run(["bench", "--leases", "1"], { answers: ["yes"] })).code).toBe(2);
  expect((await line.run(["bench", "--clean-up", "1f3b5c7d"])).code).toBe(2);
  expect(line.sent).toEqual([]);
  const own = await line.run(["bench", "--leases", "1"], { answers: ["leasehold.test"] });
  expect(own).toMatchObject({ code: 0, asked: [expect.stringContaining("The id is used up for good")] });
  for (const args of [
    ["--cell", "1"],
    ["--clean-up", "1f3b5c7d"],
  ])
    expect((await line.run(["bench", ...args], { answers: ["no"] })).asked.join("")).not.toContain("used up");
  for (const args of [
    ["--for", "11m"],
    ["--concurrency", "129"],
    ["--leases", "100001"],
    ["--clean-up", "x"],
  ])
    expect((await line.run(["bench", ...args, "--yes"])).code).toBe(2);
});

test("Ctrl-C ends it with 130, and the names are given up all the same", async () => {
  const line = await startCommandLine();
  const interrupt = new AbortController();
  line.coordinator.faults.observe(() => {
    if (line.coordinator.faults.calls.length > 30) interrupt.abort(new Error("interrupted"));
  });
  const ran = await line.run(["bench", "--cell", "1", "--yes", "--json"], { signal: interrupt.signal });
  expect(ran.code).toBe(130);
  expect(ran.err).toContain("Cleaning up.");
  expect(JSON.parse(ran.out)).toMatchObject({ interrupted: true, problems: [] });
  expect(await claimsOf(line, "1")).toEqual([]);
  expect(await line.client().forCell("1").leases.list().all()).toEqual([]);
});

test("a deployment that refuses everything ends it early: 1", async () => {
  const line = await startCommandLine();
  await line.client().cells.freeze("1");
  const document = await line.json(["bench", "--cell", "1", "--yes"]);
  const { leases, calls, problems } = document as unknown as Document;
  expect(leases).toBeLessThan(1_100);
  expect(calls[0]).toMatchObject({ op: "begin", count: 0, p50_ms: null });
  expect(calls[0]?.failed["FAILED_PRECONDITION"]).toBeGreaterThanOrEqual(1_000);
  expect(problems).toEqual([expect.stringContaining("1000 calls failed; the last: ")]);
});

test("what a killed run has left behind can be given up later, and nothing else is", async () => {
  const line = await startCommandLine();
  const { leases } = line.client("1");
  const named = (id: string) => ({
    ...create(id),
    source: { type: "RAILS_TABLE_USERS" as const, id },
  });
  const names = ["leasehold-bench-1f3b5c7d-1", "leasehold-bench-1f3b5c7d-2", "leasehold-bench-1f3b5c7e-1"];
  const { uuid } = await leases.begin({ creates: [...names.map(named), create("ada")] });
  await leases.commit(uuid);
  await leases.begin({ creates: [named("leasehold-bench-1f3b5c7d-3")] });
  const ran = await line.run(["bench", "--clean-up", "1f3b5c7d", "--cell", "1", "--yes"]);
  expect(ran).toMatchObject({
    code: 0,
    out: "Gave up 2 names of run 1f3b5c7d, and rolled back 1 leases.\n",
  });
  const left = await claimsOf(line, "1");
  expect(left.map(({ bucket }) => bucket.value).toSorted()).toEqual(["ada", "leasehold-bench-1f3b5c7e-1"]);
});

test("if the names can't be given up, it says how to do it later", async () => {
  const line = await startCommandLine();
  const real = line.coordinator.fetch;
  const fetch: typeof real = async (url, init) =>
    (url instanceof Request ? url.url : url.toString()).includes("/records?")
      ? Response.json({ code: "FAILED_PRECONDITION", detail: "not now" }, { status: 409 })
      : real(url, init);
  Object.assign(line, { coordinator: { ...line.coordinator, fetch } });
  const ran = await line.run(["bench", "--leases", "2", "--cell", "1", "--yes"]);
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(
    /Next: leasehold bench --clean-up [\da-f]{8} --cell 1 --source RAILS_TABLE_USERS\n/,
  );
  // The cell of the run still has them, so it stays until they are given up.
  const own = await line.run(["bench", "--leases", "2", "--yes"]);
  const [, later = ""] = /Next: leasehold (bench --clean-up [\da-f]{8} --source \w+)$/m.exec(own.err) ?? [];
  Object.assign(line, { coordinator: { ...line.coordinator, fetch: real } });
  const again = await line.run([...later.split(" "), "--yes"]);
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining("Gave up 2 names") as string });
  expect(await line.client().cells.list().all()).toHaveLength(2);
});
