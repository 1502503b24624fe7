/** `leasehold shards`: a growth from its start to its end, and what stops it. */
import { describe, expect, test } from "vitest";
import { claim, startCommandLine, type CommandLine } from "./command-line.ts";

const GROW = ["shards", "grow", "--to", "6", "--yes", "--reason", "more load"];
const names = Array.from({ length: 12 }, (_, index) => `name${index}`);

const shardsOf = (line: CommandLine) => line.json(["shards"]);

test("gets more shards, keeps every owner, and does nothing when it is repeated", async () => {
  const line = await startCommandLine();
  await claim(line, "1", ...names);
  expect(await shardsOf(line)).toMatchObject({ shards: 4, growth: null });
  const { code, out, err } = await line.run(GROW);
  expect(code).toBe(0);
  expect(out).toContain("The deployment has 6 shards.");
  expect(err).toContain("The deployment has 6 shards. Old rows are deleted now.\n");
  expect(await shardsOf(line)).toMatchObject({ shards: 6, growth: null });
  const looked = (await line.json(["lookup", ...names])) as { names: { cell: string | null }[] };
  expect(looked.names.map(({ cell }) => cell)).toEqual(names.map(() => "1"));
  expect((await line.run(GROW)).out).toContain("The deployment has 6 shards already. Nothing was changed.");
  expect(await line.run(["shards", "grow", "--to", "5", "--yes", "--reason", "fewer"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("--to must be at least 6") as string,
  });
});

test("--no-cut stops before the cut, and the growth can be aborted or cut", async () => {
  const line = await startCommandLine();
  const stopped = await line.run([...GROW, "--no-cut"]);
  expect(stopped).toMatchObject({ code: 0, out: expect.stringMatching(/^can be cut +yes$/m) as string });
  expect(stopped.err).toContain("leasehold shards grow --to 6 --reason TEXT");
  expect(await shardsOf(line)).toMatchObject({ shards: 4, growth: { to: 6, phase: "copying" } });
  expect(await line.run(["shards", "grow", "--to", "8", "--yes", "--reason", "more"])).toMatchObject({
    code: 3,
    err: expect.stringContaining("the deployment grows from 4 to 6 shards: nothing was changed") as string,
  });
  const aborted = await line.run(["shards", "abort", "--yes", "--reason", "the wrong number"]);
  expect(aborted).toMatchObject({
    code: 0,
    out: expect.stringContaining("The growth is aborted. The deployment has 4 shards") as string,
  });
  expect((await line.run(["shards", "abort", "--yes", "--reason", "again"])).code).toBe(3);
  expect((await line.run(GROW)).code).toBe(0);
  expect(await shardsOf(line)).toMatchObject({ shards: 6, growth: null });
});

test("a restore and a growth keep each other from starting", async () => {
  const line = await startCommandLine();
  const { coordinator } = line;
  const id = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";
  const start = () =>
    coordinator.fetch(`${coordinator.url}/v1/admin/operations`, {
      method: "POST",
      headers: { authorization: `Bearer ${coordinator.keys.operator}`, "content-type": "application/json" },
      body: JSON.stringify({ id, kind: "restore", reason: "region lost" }),
    });
  expect(await line.run(["operations"])).toMatchObject({ code: 0, out: "No operation runs.\n" });
  expect((await start()).status).toBe(200);
  const restore = { id, kind: "restore", about: "deployment", how_to_end: expect.any(String) as string };
  expect(await line.json(["operations"])).toMatchObject({ operations: [restore] });
  const refused = await line.run(GROW);
  expect(refused.code).toBe(3);
  expect(refused.err).toContain("A backup is being restored: wait for it, go on with it");
  expect(refused.err).toContain(`leasehold operations end ${id}`);
  expect((await line.run(["operations", "end", id, "--yes", "--reason", "given up"])).out).toContain(
    "The restore does not count as running any more.",
  );
  expect((await line.run([...GROW, "--no-cut"])).code).toBe(0);
  const blocked = await start();
  expect(blocked.status).toBe(409);
  const growth = (await line.json(["operations"])) as { operations: { id: string }[] };
  expect(await blocked.json()).toMatchObject({
    reason: "OPERATION_RUNNING",
    operation: growth.operations[0],
  });
  const running = growth.operations[0]?.id ?? "";
  const kept = await line.run(["operations", "end", running, "--yes", "--reason", "no"]);
  expect(kept).toMatchObject({ code: 3, err: expect.stringContaining("leasehold shards abort") as string });
});

describe("is a conflict if another operator aborts the growth meanwhile", () => {
  test.each([
    { at: "steps", options: [] },
    { at: "steps", options: ["--no-cut"] },
    { at: "cut", options: [] },
  ])("before $at, with $options", async ({ at, options }) => {
    const line = await startCommandLine();
    const { coordinator } = line;
    const abort = async (): Promise<void> => {
      await coordinator.fetch(`${coordinator.url}/v1/admin/growth/abort`, {
        method: "POST",
        headers: { authorization: `Bearer ${coordinator.keys.operator}`, "content-type": "application/json" },
        body: JSON.stringify({ reason: "the wrong number" }),
      });
    };
    const fetch: typeof coordinator.fetch = async (url, init) => {
      const { pathname } = new URL(url instanceof Request ? url.url : url);
      if (pathname === `/v1/admin/growth/${at}`) await abort();
      return coordinator.fetch(url, init);
    };
    Object.assign(line, { coordinator: { ...coordinator, fetch } });
    const { code, out, err } = await line.run([...GROW, ...options]);
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(err).toContain("the growth to 6 shards was aborted meanwhile: the deployment has 4 shards");
    expect(err).not.toContain("The deployment has 6 shards");
  });
});

test("a growth that another operator starts instead is not cut", async () => {
  const line = await startCommandLine();
  const { coordinator } = line;
  let isFirst = true;
  const fetch: typeof coordinator.fetch = async (url, init) => {
    const { pathname } = new URL(url instanceof Request ? url.url : url);
    if (isFirst && pathname === "/v1/admin/growth/steps") {
      isFirst = false;
      await line.run(["shards", "abort", "--yes", "--reason", "the wrong number"]);
      await line.run(["shards", "grow", "--to", "8", "--no-cut", "--yes", "--reason", "more"]);
    }
    return coordinator.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...coordinator, fetch } });
  const { code, err } = await line.run(GROW);
  expect(code).toBe(3);
  expect(err).toContain("Next: leasehold shards grow --to 8 --reason TEXT");
  expect(await shardsOf(line)).toMatchObject({ shards: 4, growth: { to: 8, phase: "copying" } });
});

/** Answers steps of a growth as if shard 1 could not be asked. */
function silenceShard(line: CommandLine): void {
  const { coordinator } = line;
  const fetch: typeof coordinator.fetch = async (url, init) => {
    const answer = await coordinator.fetch(url, init);
    if (!new Request(url).url.endsWith("/steps")) return answer;
    const shards = (await answer.json()) as {
      growth: { can_be_cut: boolean; sources: { state: unknown }[] };
    };
    shards.growth.can_be_cut = false;
    Object.assign(shards.growth.sources[1] ?? {}, { state: null });
    return Response.json(shards);
  };
  Object.assign(line, { coordinator: { ...coordinator, fetch } });
}

test("says again and again which shard it waits for, and ends if nothing moves", async () => {
  const line = await startCommandLine();
  silenceShard(line);
  const { code, out, err } = await line.run(GROW);
  expect({ code, out }).toEqual({ code: 6, out: "" });
  const told = err.match(/^copying: .*; no answer from shard 1$/gm) ?? [];
  expect(told.length).toBeGreaterThan(5);
  expect(err).toContain("the growth goes on without this command, which has stopped: nothing moves");
  expect(err).toContain("Next: leasehold shards grow --to 6 --reason TEXT");
});

test("ends with 3 if a shard can't answer, and does not say that the growth may have started", async () => {
  const line = await startCommandLine();
  const refusal = {
    title: "The current state does not allow it",
    status: 409,
    detail: "Nothing was started, because shards can't copy their names now: shard 1 (timed out).",
    code: "FAILED_PRECONDITION",
    reason: "GROWTH_SHARD_UNAVAILABLE",
    retryable: false,
  };
  const { coordinator } = line;
  const fetch: typeof coordinator.fetch = async (url, init) =>
    init?.method === "POST"
      ? Response.json(refusal, { status: 409, headers: { "content-type": "application/problem+json" } })
      : coordinator.fetch(url, init);
  Object.assign(line, { coordinator: { ...coordinator, fetch } });
  const { code, err } = await line.run(GROW);
  expect(code).toBe(3);
  expect(err).toContain(`leasehold: ${refusal.detail} (FAILED_PRECONDITION`);
  expect(err).not.toContain("may have been");
});

test("--dry-run changes nothing", async () => {
  const line = await startCommandLine();
  const { code, out } = await line.run(["shards", "grow", "--to", "6", "--dry-run", "--reason", "a test"]);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("Would get 6 shards.") as string });
  expect(line.changes).toEqual([]);
});
