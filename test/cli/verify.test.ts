/** `leasehold verify`: what cells report of their verifications. */
import { expect, test } from "vitest";
import { startCommandLine, type CommandLine } from "./command-line.ts";

const sdk = { name: "my-cell", version: "3.1.0" };
const none = { missing: 0, different: 0, extra: 0, duplicates: 0, unnameable: 0 };
const QUARTER_MS = 15 * 60_000;

type Counts = Record<string, number>;

const report = async (line: CommandLine, cell: string, counts: Counts, status: "done" | "failed" = "done") =>
  line.client(cell).cells.reportStatus({
    sdk,
    reconciliation: { outcome: "done", ended_ago_ms: 0, stale_leases: 4 },
    verification: { status, is_applied: false, counts, ended_ago_ms: 3_600_000 },
  });

const outcomes = async (line: CommandLine): Promise<unknown> =>
  ((await line.json(["verify", "status"]))["cells"] as { outcome: string }[]).map(({ outcome }) => outcome);

test("status: 0 if each cell was verified and no drift was found", async () => {
  const line = await startCommandLine();
  await report(line, "1", { rows: 5, ...none });
  await report(line, "2", { recent: 3, other_cell: 0 });
  const { code, out, err } = await line.run(["verify", "status"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^CELL +VERIFIED +STATUS +MISSING +DIFFERENT +EXTRA +DUPLICATES +UNNAMEABLE +REPORTED/);
  expect(out).toMatch(/^2 +1h(?: \d+s)? ago +done +0 +0 +0 +0 +0 +\d+s ago$/m);
});

test.each(Object.keys(none))(
  "status: 10 if a verification found %s, also if a cell is silent",
  async (kind) => {
    const line = await startCommandLine();
    await report(line, "2", none);
    await line.coordinator.advance(QUARTER_MS + 60_000);
    await report(line, "1", { ...none, [kind]: 3 });
    const { code, err } = await line.run(["verify", "status"]);
    expect(code).toBe(10);
    expect(err).toContain("Cell 2 is silent");
    expect(err).toContain("Next: leasehold verify report --cell 1");
    expect(await outcomes(line)).toEqual(["drift", "silent"]);
  },
);

test("status: 1 if a cell never reported, or no verification of it was ever done", async () => {
  const line = await startCommandLine();
  await report(line, "1", none, "failed");
  expect(await outcomes(line)).toEqual(["never_verified", "never_verified"]);
  const { code, out, err } = await line.run(["verify", "status"]);
  expect(code).toBe(1);
  expect(out).toMatch(/^2 +- +- +- +- +- +- +- +-$/m);
  expect(err).toContain("Cell 2 has never reported a verification that was done.");
});

test("status: a cell is silent 15 minutes after its last report, until the next one", async () => {
  const line = await startCommandLine({ cells: ["1"] });
  await report(line, "1", none);
  await line.coordinator.advance(QUARTER_MS - 60_000);
  expect(await outcomes(line)).toEqual(["ok"]);
  await line.coordinator.advance(120_000);
  expect(await outcomes(line)).toEqual(["silent"]);
  expect((await line.run(["verify", "status"])).code).toBe(1);
  await line.client("1").cells.reportStatus({ sdk });
  expect(await outcomes(line)).toEqual(["ok"]);
});

test("report: all that the cell reported, with the exit codes of status", async () => {
  const line = await startCommandLine({ cells: ["1", "2", "3"] });
  await report(line, "1", { ...none, rows: 900, missing: 2, other_cell: 1 });
  await report(line, "2", none);
  const { code, out } = await line.run(["verify", "report", "--cell", "1"]);
  expect(code).toBe(10);
  expect(out).toMatch(/^sdk +my-cell 3\.1\.0$/m);
  expect(out).toMatch(/^verification +done, ended 1h/m);
  expect(out).toMatch(/^repairs +no, it was a dry run$/m);
  expect(out).toMatch(/^other cell +1$/m);
  expect(out).toMatch(/^stale leases +4$/m);
  expect((await line.run(["verify", "report", "--cell", "2"])).code).toBe(0);
  const never = await line.run(["verify", "report", "--cell", "3"]);
  expect(never).toMatchObject({ code: 1, err: expect.stringContaining("Cell 3 has never reported") });
  expect((await line.run(["verify", "report", "--cell", "9"])).code).toBe(4);
});

test("a viewer may see both, and a key of a cell may not see the cells of others: 5", async () => {
  const line = await startCommandLine({ cells: ["1"] });
  await report(line, "1", none);
  const { key: viewer } = await line.client().keys.mint({ role: "viewer" });
  for (const args of [["status"], ["report", "--cell", "1"]]) {
    const { code } = await line.run(["verify", ...args], { env: { LEASEHOLD_KEY: viewer } });
    expect(code).toBe(0);
  }
  const env = { LEASEHOLD_KEY: line.coordinator.keys.cell("1") };
  expect((await line.run(["verify", "status"], { env })).code).toBe(5);
});
