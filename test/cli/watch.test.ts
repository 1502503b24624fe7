/** `leasehold watch`: what it prints, what it asks for, how it continues, and outages. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ChangesWatch } from "../../src/cli/watch/watch-changes.ts";
import { fakeClient, problem } from "../users/client/fake.ts";
import { claim, create, startCommandLine, type CommandLine, type RunOptions } from "./command-line.ts";

type Step = () => unknown;

/** Runs a watch that does one step between two polls, and is then interrupted. */
async function watch(line: CommandLine, args: readonly string[], steps: readonly Step[], env = {}) {
  const interrupt = new AbortController();
  const left = [...steps];
  const waits: number[] = [];
  const options: RunOptions = {
    env,
    signal: interrupt.signal,
    wait: async (ms) => {
      waits.push(ms);
      const step = left.shift();
      if (step === undefined) interrupt.abort(new Error("interrupted"));
      else await step();
    },
  };
  const ran = await line.run(["watch", ...args], options);
  return { ...ran, waits };
}

const linesOf = (out: string): Record<string, unknown>[] =>
  out
    .split("\n")
    .filter(Boolean)
    .map((text) => JSON.parse(text) as Record<string, unknown>);

const NAMES = ["ada", "grace", "--type", "USERNAMES", "--jsonl"];

async function destroy(line: CommandLine, value: string): Promise<void> {
  const { leases } = line.client("1");
  const { uuid } = await leases.begin({ destroys: [{ bucket: { type: "USERNAMES", value } }] });
  await leases.commit(uuid);
}

describe("names", () => {
  test("it prints their owners, then each change, and asks only for names that a lease held", async () => {
    const line = await startCommandLine();
    // Shards apply a decision a moment after its answer.
    const applied = () => line.coordinator.advance(1_000);
    await claim(line, "1", "ada").then(applied);
    let questions = 0;
    const { code, out, err, waits } = await watch(line, NAMES, [
      () => (questions = line.changes.length),
      () => expect(line.changes).toHaveLength(questions),
      () => destroy(line, "ada").then(applied),
      () => claim(line, "2", "ada").then(applied),
    ]);
    expect(linesOf(out)).toMatchObject([
      { event: "name", type: "USERNAMES", name: "ada", cell: "1", settled: true, before: null },
      { name: "grace", cell: null, epoch: null, before: null },
      { name: "ada", cell: null, before: { cell: "1" } },
      { name: "ada", cell: "2", before: { cell: null } },
    ]);
    expect(code).toBe(130);
    expect(err).toMatch(/^Next: leasehold watch --type USERNAMES --from '?[\d:,]+'? -- ada grace$/m);
    expect(waits).toEqual(Array.from({ length: 5 }, () => 2_000));
  });

  test("it continues with what happened meanwhile, and only that", async () => {
    const line = await startCommandLine();
    await claim(line, "1", "ada", "grace");
    const first = await watch(line, NAMES, []);
    const [, from = ""] = /--from '?([\d:,]+)/.exec(first.err) ?? [];
    await destroy(line, "grace");
    const { out } = await watch(line, [...NAMES, "--from", from], []);
    expect(linesOf(out)).toMatchObject([{ name: "grace", cell: null }]);
    expect(linesOf((await watch(line, [...NAMES, "--from", "x"], [])).out)).toEqual([]);
  });

  test("a name that a lease holds, and --cell", async () => {
    const line = await startCommandLine();
    const { leases } = line.client("2");
    const begin = () => leases.begin({ creates: [create("ada")] });
    const { out } = await watch(line, ["ada", "--type", "USERNAMES"], [begin]);
    expect(out).toMatch(/Z {2}USERNAMES ada: no owner\n.*Z {2}USERNAMES ada: cell 2.*; a lease holds it/);
    const other = await watch(line, [...NAMES, "--cell", "1"], []);
    expect(other.out).toBe("");
  });

  test("a key of a cell works without reports, but can't continue", async () => {
    const line = await startCommandLine();
    const env = { LEASEHOLD_KEY: line.coordinator.keys.cell("1") };
    const { out } = await watch(line, NAMES, [() => claim(line, "2", "grace")], env);
    expect(linesOf(out)).toMatchObject([{ name: "ada" }, { name: "grace" }, { name: "grace", cell: "2" }]);
    expect(line.sent.filter(({ path }) => path.startsWith("/v1/reports"))).toEqual([]);
    expect((await watch(line, [...NAMES, "--from", "0:1"], [], env)).code).toBe(2);
  });

  test("an outage is said and waited for, and no change is lost", async () => {
    const line = await startCommandLine();
    const real = line.coordinator.fetch;
    let isDown = false;
    const fetch: typeof real = (url, init) =>
      isDown ? Promise.resolve(new Response("", { status: 503 })) : real(url, init);
    Object.assign(line, { coordinator: { ...line.coordinator, fetch } });
    const claimMeanwhile = async (): Promise<void> => {
      await claim(line, "1", "ada");
      isDown = true;
    };
    const { out, err, waits } = await watch(line, NAMES, [
      claimMeanwhile,
      () => undefined,
      () => (isDown = false),
    ]);
    expect(linesOf(out)).toMatchObject([{ name: "ada" }, { name: "grace" }, { name: "ada", cell: "1" }]);
    expect(err).toMatch(/No answer: .*Trying again in 1s\.\n.*Trying again in 2s\.\nThe deployment answers/s);
    expect(waits).toEqual([2_000, 1_000, 2_000, 2_000]);
  });

  test("it says which flags are missing, and sends nothing", async () => {
    const line = await startCommandLine();
    for (const args of [
      ["ada"],
      ["--type", "USERNAMES"],
      ["ada", "--json"],
      ["--from", "yesterday"],
      ["--from", "999999999d"],
    ])
      expect((await line.run(["watch", ...args])).code).toBe(2);
    expect(line.sent).toEqual([]);
  });
});

describe("the deployment", () => {
  test("it prints leases, cells and what operators change", async () => {
    const line = await startCommandLine();
    const { leases } = line.client("2");
    const operator = line.client();
    let uuid = "";
    const { out, err } = await watch(
      line,
      ["--jsonl"],
      [
        async () => ({ uuid } = await leases.begin({ creates: [create("ada")] })),
        () => leases.commit(uuid),
        async () => {
          await operator.cells.freeze("1", { reason: "tests" });
          await line.coordinator.cron();
        },
      ],
    );
    const events = linesOf(out);
    expect(events.filter(({ event }) => event === "lease")).toMatchObject([
      { cell: "2", lease: uuid, state: "GRANTED" },
      { cell: "2", lease: uuid, state: "COMMITTED" },
    ]);
    expect(events.filter(({ event }) => event === "cell")).toMatchObject([{ cell: "1", state: "FROZEN" }]);
    expect(events.filter(({ event }) => event === "audit")).toMatchObject([
      { action: "freeze_cell", target: "1", reason: "tests" },
    ]);
    const [, from = ""] = /Next: leasehold watch --from (\S+)$/m.exec(err) ?? [];
    expect(Date.parse(from)).toBeGreaterThan(Date.now() - 60_000);
  });

  test("[X5] a cell that is removed is printed once, and is not asked for its leases any more", async () => {
    const line = await startCommandLine();
    await line.client().cells.drain("2");
    const file = join(line.home, "cell-2.jsonl");
    const remove = ["cells", "remove", "2", "--export", file, "--reason", "tests", "--yes"];
    let asked = 0;
    const leases = () => line.sent.filter(({ path }) => path.startsWith("/v1/cells/2/leases")).length;
    const { out } = await watch(
      line,
      ["--jsonl"],
      [
        async () => expect(await line.run(remove)).toMatchObject({ code: 0 }),
        () => (asked = leases()),
        () => undefined,
      ],
    );
    expect(linesOf(out).filter(({ event }) => event === "cell")).toMatchObject([
      { cell: "2", state: "REMOVED", before: { state: "DRAINING" } },
    ]);
    expect(asked).toBeGreaterThan(0);
    expect(leases()).toBe(asked);
  });

  test("--from begins with earlier entries of the audit, and --cell leaves out others", async () => {
    const line = await startCommandLine();
    await line.client().cells.freeze("1", { reason: "tests" });
    await line.coordinator.cron();
    const all = await watch(line, ["--from", "1h"], []);
    expect(all.out).toMatch(/audit \S+: freeze_cell 1 with key \S+, because: tests\n/);
    expect((await watch(line, ["--from", "1h", "--cell", "2", "--jsonl"], [])).out).not.toContain("freeze");
  });
});

describe("changes", () => {
  test("[F4] it prints every change, and the command that continues where it ended", async () => {
    const line = await startCommandLine();
    const applied = () => line.coordinator.advance(20_000);
    const { code, out, err } = await watch(
      line,
      ["--changes", "--jsonl", "--type", "USERNAMES"],
      [() => claim(line, "1", "ada").then(applied), () => destroy(line, "ada").then(applied)],
    );
    expect(code).toBe(130);
    const lines = linesOf(out);
    expect(lines.filter((each) => "event" in each)).toMatchObject([
      { event: "claimed", cell_id: "1", claim: { bucket: { type: "USERNAMES", value: "ada" } } },
      { event: "released", cell_id: "1", claim: { bucket: { value: "ada" } } },
    ]);
    expect(lines[0]).toMatchObject({
      checkpoint: expect.any(String) as string,
      ranges: expect.any(Array) as [],
    });
    const last = lines.at(-1)?.["checkpoint"];
    expect(err).toContain(`--from ${String(last)}`);
    const [, from] = /watch --changes --type USERNAMES --from (\S+)/.exec(err) ?? [];
    expect(from).toMatch(/^\d+:\d+/);
    await claim(line, "2", "grace").then(applied);
    const later = await watch(line, ["--changes", "--from", from ?? ""], []);
    expect(later.out).toMatch(/USERNAMES grace: claimed by cell 2, epoch \d+\n/);
    expect(later.out).not.toContain("ada");
    expect(later.out).toMatch(/lease [\da-f-]+ of cell 2: committed\n/);
  });

  test("[F4] it loses nothing if the deployment fails between two pages of a look", async () => {
    const change = {
      id: "granted:0:1",
      event: "granted",
      shard: 0,
      position: 2,
      at: "2026-11-28T12:00:00.000Z",
      cell_id: "7",
      lease_uuid: "0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11",
      epoch: 1,
    };
    const at = (position: number) => ({ incarnation: 17, position });
    const moved = { shard: 0, after: at(1), through: at(2) };
    const page = (checkpoint: string, more: object) => ({
      status: 200,
      json: { changes: [], checkpoint, has_more: false, ranges: [], unavailable: [], ...more },
    });
    const { client } = fakeClient(
      [
        page("0:2", { changes: [change], has_more: true, ranges: [moved] }),
        problem(503, "UNAVAILABLE"),
        page("0:3", {}),
      ],
      { retries: 0 },
    );
    const filter = { cell: undefined, type: undefined, from: "0:1" };
    const watching = new ChangesWatch(client, filter);
    await expect(watching.poll()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(watching.place).toBe("0:1");
    expect((await watching.poll()).map(({ document }) => document)).toEqual([
      change,
      { checkpoint: "0:2", ranges: [moved] },
      { checkpoint: "0:3", ranges: [] },
    ]);
    expect(watching.place).toBe("0:3");
  });

  test("it refuses names, and what is no checkpoint", async () => {
    const line = await startCommandLine();
    const names = await line.run(["watch", "ada", "--changes"]);
    expect(names).toMatchObject({ code: 2, err: expect.stringContaining("leave the names out") as string });
    const from = await line.run(["watch", "--changes", "--from", "yesterday"]);
    expect(from).toMatchObject({ code: 2, err: expect.stringContaining("--from must be pairs") as string });
  });
});
