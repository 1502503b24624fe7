/** `leasehold leases`: list, show, decide. */
import { describe, expect, test } from "vitest";
import { create, startCommandLine, type CommandLine } from "./command-line.ts";

async function begin(line: CommandLine, cell: string, ...names: string[]): Promise<string> {
  return (await line.client(cell).leases.begin({ creates: names.map(create) })).uuid;
}

const HOUR_MS = 3_600_000;

describe("ls", () => {
  test("lists open leases of all cells or of one, and says when the list was cut", async () => {
    const line = await startCommandLine();
    const ids = [
      await begin(line, "1", "ada"),
      await begin(line, "1", "grace"),
      await begin(line, "2", "joan"),
    ];
    const { leases, cut } = await line.json(["leases", "ls"]);
    expect((leases as { uuid: string }[]).map(({ uuid }) => uuid)).toEqual(ids);
    expect(cut).toBe(false);
    const limited = await line.run(["leases", "ls", "--cell", "1", "--limit", "1"]);
    expect(limited.code).toBe(0);
    expect(limited.out.trimEnd().split("\n")).toHaveLength(2);
    expect(limited.err).toContain("The list was cut after 1: give a larger --limit to see more.");
    expect(limited.err).toContain(`Next: leasehold leases show ${ids[0]} --cell 1`);
  });

  test("--stale and --older-than choose by age", async () => {
    const line = await startCommandLine();
    const old = await begin(line, "1", "ada");
    await line.coordinator.advance(HOUR_MS);
    await begin(line, "1", "grace");
    await line.coordinator.cron();
    for (const args of [["--stale"], ["--older-than", "30m"], ["--stale", "--older-than", "30m"]]) {
      const { leases } = await line.json(["leases", "ls", ...args]);
      expect((leases as { uuid: string }[]).map(({ uuid }) => uuid)).toEqual([old]);
    }
    const none = await line.run(["leases", "ls", "--stale", "--older-than", "2h"]);
    expect(none).toMatchObject({ code: 0, out: "" });
    expect(none.err).toMatch(/There are no stale leases\.\n$/);
  });

  test("--stale says up to when its copy of the leases goes", async () => {
    const line = await startCommandLine();
    await line.coordinator.cron();
    const uuid = await begin(line, "1", "ada");
    const args = ["leases", "ls", "--stale", "--older-than", "0s"];
    const { leases, last_pulled_at: at } = await line.json(args);
    expect(leases).toEqual([]);
    const note =
      "This list is read from a copy that the cron makes once a minute. It has all leases that were " +
      `granted before ${String(at)}. Later ones are missing until the next run.\n`;
    expect((await line.run(args)).err).toBe(`${note}There are no stale leases.\n`);
    await line.coordinator.advance(1_000);
    await line.coordinator.cron();
    expect((await line.run(args)).out).toContain(uuid);
    expect((await line.run(["leases", "ls", "--older-than", "0s"])).err).not.toContain("copy");
  });

  test.each([
    ["--limit", "0"],
    ["--limit", "x"],
    ["--cell", "07"],
    ["--older-than", "soon"],
    ["--older-than", "36501d"],
  ])("%s %s is refused before anything is sent", async (...args) => {
    const line = await startCommandLine();
    expect((await line.run(["leases", "ls", ...args])).code).toBe(2);
    expect(line.sent).toEqual([]);
  });
});

test("show: the names, and 4 for an unknown lease", async () => {
  const line = await startCommandLine();
  const uuid = await begin(line, "1", "ada");
  const { out, err } = await line.run(["leases", "show", uuid, "--cell", "1"]);
  expect(out).toMatch(/^create +USERNAMES +ada +USER \d+ +RAILS_TABLE_USERS \d+$/m);
  expect(err).toContain(`Next: leasehold leases rollback ${uuid} --cell 1 --reason TEXT`);
  expect(await line.run(["leases", "show", uuid, "--cell", "2"])).toMatchObject({ code: 4, out: "" });
  expect(await line.run(["leases", "show", uuid])).toMatchObject({ code: 2 });
  expect(await line.run(["leases", "show", "x", "--cell", "1"])).toMatchObject({ code: 2 });
});

test("[C8] show says that the cell has renewed the lease, and why", async () => {
  const line = await startCommandLine();
  const uuid = await begin(line, "1", "ada");
  await line.client("1").leases.renew(uuid, "import: 60 %");
  const { out, err } = await line.run(["leases", "show", uuid, "--cell", "1"]);
  expect(out).toMatch(/^renewed for +import: 60 %$/m);
  expect(err).toMatch(/^The cell said at \S+Z that it still works on it: import: 60 %$/m);
});

test("show and a dry run of a decision say what the cell reported last", async () => {
  const line = await startCommandLine();
  const uuid = await begin(line, "1", "ada");
  const show = ["leases", "show", uuid, "--cell", "1"];
  expect((await line.run(show)).err).toContain("The cell has never reported its status");
  await line.client("1").cells.reportStatus({
    sdk: { name: "my-cell", version: "3.1.0" },
    reconciliation: { outcome: "aborted", ended_ago_ms: 7_200_000 },
  });
  await line.coordinator.advance(HOUR_MS);
  const rollback = ["leases", "rollback", uuid, "--cell", "1", "--reason", "x", "--dry-run"];
  for (const args of [show, rollback]) {
    const { err } = await line.run(args);
    expect(err).toMatch(/The cell reported .* ago \(my-cell 3\.1\.0\), with a reconciliation: aborted /);
  }
});

test("show says how to decide, and that a cell doesn't see its stale lease", async () => {
  const line = await startCommandLine();
  const uuid = await begin(line, "1", "ada");
  const show = ["leases", "show", uuid, "--cell", "1"];
  const sdk = { name: "my-cell", version: "3.1.0" };
  const report = async (outcome: "done" | "aborted", stale: number): Promise<string> => {
    await line.client("1").cells.reportStatus({ sdk, reconciliation: { outcome, stale_leases: stale } });
    return (await line.run(show)).err;
  };
  const unseen = "its SDK doesn't see this one";
  expect(await report("done", 0)).not.toContain(unseen);
  await line.coordinator.advance(HOUR_MS);
  expect(await report("aborted", 0)).not.toContain(unseen);
  await line.coordinator.advance(HOUR_MS);
  expect(await report("done", 1)).not.toContain(unseen);
  await line.coordinator.advance(HOUR_MS);
  const err = await report("done", 0);
  expect(err).toMatch(/done \d+s ago, 0 stale leases left\./);
  expect(err).toContain(unseen);
  expect(err).toContain("Check that it runs as cell 1 of this deployment");
  expect(err).toContain("commit if it has the changes of this lease, roll back if it doesn't.");
  expect(err).toContain('"A cell is down with open leases" in docs/operating/runbook.md');
  expect(err).toContain("Next: leasehold verify report --cell 1");
});

describe.each([
  ["commit", "COMMITTED"],
  ["rollback", "ROLLED_BACK"],
] as const)("%s", (decision, state) => {
  const other = decision === "commit" ? "rollback" : "commit";

  test("sends no decision without a reason, a confirmation, or after the wrong cell", async () => {
    const line = await startCommandLine();
    const uuid = await begin(line, "1", "ada");
    const args = ["leases", decision, uuid, "--cell", "1"];
    expect((await line.run([...args, "--yes"])).err).toContain("--reason is required");
    expect((await line.run([...args, "--yes", "--reason", " "])).err).toContain("--reason is required");
    expect((await line.run([...args, "--yes", "--reason", "a\nb"])).err).toContain("control characters");
    expect(line.sent).toEqual([]);
    expect((await line.run([...args, "--reason", "gone"])).err).toContain("give --yes");
    expect((await line.run([...args, "--reason", "gone"], { answers: ["2"] })).code).toBe(2);
    expect((await line.run([...args, "--dry-run"])).err).toContain("Nothing was changed.");
    expect(line.changes).toEqual([]);
    expect((await line.client("1").leases.get(uuid)).state).toBe("GRANTED");
  });

  test("decides with the reason, says that there is no undo, and does nothing twice", async () => {
    const line = await startCommandLine();
    const uuid = await begin(line, "1", "ada");
    const args = ["leases", decision, uuid, "--cell", "1", "--reason", "cell 1 is gone"];
    const decided = await line.run(args, { answers: ["1"] });
    expect(decided).toMatchObject({ code: 0, out: expect.stringContaining(`is ${state}`) });
    expect(decided.asked[0]).toContain("because: cell 1 is gone");
    expect(decided.err).toContain("There is no undo.");
    expect(await line.client("1").leases.get(uuid)).toMatchObject({
      state,
      decided_by: "operator",
      reason: "cell 1 is gone",
    });
    line.sent.length = 0;
    const again = await line.run([...args, "--yes"]);
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining("Nothing was changed.") });
    const opposite = ["leases", other, ...args.slice(2), "--yes"];
    expect(await line.run(opposite)).toMatchObject({ code: 3, out: "" });
    expect(line.changes).toEqual([]);
  });
});
